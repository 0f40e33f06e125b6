"""Private files and locks, and the space on a disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aggregator.errors import ConfigurationError
from aggregator.store.disk import (
    MAX_LOW_BYTES,
    DiskSpace,
    FileLock,
    allocate_ahead,
    give_to_owner,
    read_disk_space,
    require_access,
    rewrite_message,
    temporary_directory,
    write_flushed,
)


def test_a_temporary_directory_is_private_and_deleted() -> None:
    """Also after an error."""
    with pytest.raises(KeyError), temporary_directory() as path:
        (path / "0.sock").touch()
        assert path.stat().st_mode & 0o777 == 0o700
        raise KeyError
    assert not path.exists()


def test_one_holder_at_a_time_whose_information_others_can_read(tmp_path: Path) -> None:
    """The second process cannot lock it and reads the holder's text; a shorter text replaces a longer one."""
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_lock() and not second.try_lock()
    first.holder_info = "a long text with é and \udcff"
    assert second.holder_info == "a long text with é and \udcff"
    first.holder_info = "short"
    assert second.holder_info == "short"

    first.close(unlock=True)
    assert second.try_lock()
    second.close(unlock=True)


@pytest.mark.integration
def test_a_child_process_that_inherits_it_holds_it(tmp_path: Path) -> None:
    """It is held after this process closes it, until the child ends, unless it is unlocked for all."""
    for unlock in (False, True):
        lock, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
        assert lock.try_lock()
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[lock.descriptor])
        lock.close(unlock=unlock)
        assert other.try_lock() is unlock

        child.communicate()
        assert other.try_lock()
        other.close(unlock=True)


def test_its_file_is_private(tmp_path: Path) -> None:
    """Only this user may read it."""
    FileLock(tmp_path / "lock").close(unlock=False)

    assert os.stat(tmp_path / "lock").st_mode & 0o777 == 0o600


def test_a_flushed_file_is_private_and_new(tmp_path: Path) -> None:
    """An existing file is not overwritten."""
    write_flushed(tmp_path / "file", [b"con", b"tent"])
    with pytest.raises(FileExistsError):
        write_flushed(tmp_path / "file", [b"other"])

    assert (tmp_path / "file").read_bytes() == b"content"
    assert os.stat(tmp_path / "file").st_mode & 0o777 == 0o600


MB = 10**6
LARGE = 10**12


def test_the_marks_are_fixed_on_a_large_and_relative_on_a_small_disk() -> None:
    """64 MiB, or a twentieth of the disk; writes resume at twice as much."""
    assert DiskSpace(Path("d"), 0, LARGE).low_bytes == MAX_LOW_BYTES
    assert DiskSpace(Path("d"), 2 * MAX_LOW_BYTES, LARGE).has_recovered
    assert not DiskSpace(Path("d"), 2 * MAX_LOW_BYTES - 1, LARGE).has_recovered
    assert DiskSpace(Path("d"), 0, 20 * MB).low_bytes == MB


@pytest.mark.parametrize(
    ("free_mb", "is_low", "has_recovered"), [(0.9, True, False), (1, False, False), (2, False, True)]
)
def test_between_the_marks_nothing_changes(free_mb: float, is_low: bool, has_recovered: bool) -> None:
    """Refusing and accepting do not alternate around one mark."""
    space = DiskSpace(Path("d"), round(free_mb * MB), 20 * MB)

    assert (space.is_low, space.has_recovered) == (is_low, has_recovered)


def test_a_copy_of_the_log_must_leave_the_low_mark_free() -> None:
    """A rewrite writes a second copy of the log."""
    assert DiskSpace(Path("d"), 5 * MB, 20 * MB).fits_copy(4 * MB)
    assert not DiskSpace(Path("d"), 5 * MB, 20 * MB).fits_copy(4 * MB + 1)


def test_the_sentences_name_directory_space_and_remedy() -> None:
    """One sentence each."""
    space = DiskSpace(Path("/data"), 300_000, 20 * MB)

    assert space.full_message == (
        "The disk of /data is full: 0.3 MB free; articles can be read, but none is stored until 2.0 MB are "
        "free: delete other files on it, or enlarge it."
    )
    assert "it has 1,500.0 MB" in rewrite_message(space, 1500 * MB)


def test_the_space_of_a_directory_is_read(tmp_path: Path) -> None:
    """None for a directory that does not exist."""
    space = read_disk_space(tmp_path)

    assert space is not None and 0 <= space.free_bytes <= space.total_bytes
    assert read_disk_space(tmp_path / "absent") is None


@pytest.mark.skipif(sys.platform != "linux", reason="fallocate is a call of Linux")
def test_space_is_allocated_without_changing_the_length(tmp_path: Path) -> None:
    """Readers of the file notice nothing; a missing file is ignored."""
    path = tmp_path / "log"
    path.write_bytes(b"abc")

    allocate_ahead(path, 2**20)
    allocate_ahead(tmp_path / "absent", 2**20)

    assert path.read_bytes() == b"abc"
    assert os.stat(path).st_blocks * 512 >= 2**20


OTHER_UID = 4711
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def owned_by_another(data_dir: Path) -> list[Path]:
    """A data directory of OTHER_UID in which root has written a log."""
    (data_dir / "appendonlydir").mkdir(mode=0o700)
    written = [
        data_dir / name for name in ("lock", "log-lengths.json", "appendonlydir/appendonly.aof.manifest")
    ]
    for path in written:
        path.write_text("")
        path.chmod(0o600)
    os.chown(data_dir, OTHER_UID, OTHER_UID)
    return [data_dir / "appendonlydir", *written]


@as_root
def test_what_root_writes_is_given_to_the_owner_of_the_directory(tmp_path: Path) -> None:
    """Not other files, nor a second name of a file that is elsewhere, nor what a symbolic link names."""
    data_dir, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    data_dir.mkdir()
    elsewhere.write_text("")
    written = owned_by_another(data_dir)
    (data_dir / "hard.json").hardlink_to(elsewhere)
    (data_dir / "soft.json").symlink_to(elsewhere)
    (data_dir / "other.txt").write_text("")

    give_to_owner(data_dir)

    assert {path.stat().st_uid for path in written} == {OTHER_UID}
    assert elsewhere.stat().st_uid == (data_dir / "other.txt").stat().st_uid == 0


@as_root
def test_files_of_root_are_named_with_the_command_that_repairs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the owner of the directory, who cannot change them; not once they are given to him."""
    owned_by_another(tmp_path)
    monkeypatch.chdir(tmp_path)  # its parents are private
    os.seteuid(OTHER_UID)
    try:
        with pytest.raises(
            ConfigurationError,
            match=rf"lock belongs to root, not to user {OTHER_UID}: `chown -R {OTHER_UID}: ",
        ):
            require_access(Path())
    finally:
        os.seteuid(0)
    give_to_owner(tmp_path)
    os.seteuid(OTHER_UID)
    try:
        require_access(Path())
    finally:
        os.seteuid(0)
