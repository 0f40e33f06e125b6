"""Private files: locks, and temporary directories, which the next start removes after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from aggregator.store.durable_files import FileLock, TemporaryDirectory, write_flushed

PROGRAM = """
import os, signal, subprocess
from aggregator.store.durable_files import TemporaryDirectory

directory = TemporaryDirectory()
(directory.path / "0.sock").touch()
print(directory.path, flush=True)
{before}
os.kill(os.getpid(), signal.SIGKILL)
"""
START_CHILD = """
child = subprocess.Popen(
    ["sleep", "600"],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
    pass_fds=[directory.lock_descriptor],
)
print(child.pid, flush=True)
"""


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def run_and_kill(before: str = "") -> list[str]:
    """The lines that a process printed that created a directory and was killed."""
    command = [sys.executable, "-c", PROGRAM.format(before=before)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def test_the_directory_of_a_killed_process_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """Those of running processes and of other programs stay."""
    (killed,) = run_and_kill()
    assert Path(killed).is_dir()
    (tmp_path / "aggregator-of-another-program").mkdir()
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        assert not Path(killed).exists()
        assert first.is_dir() and second.is_dir() and second.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in tmp_path.iterdir()] == ["aggregator-of-another-program"]


def test_a_child_that_inherits_the_lock_keeps_the_directory() -> None:
    """The embedded store needs its socket until it has ended."""
    killed, child = run_and_kill(START_CHILD)
    with TemporaryDirectory():
        assert Path(killed).is_dir()
    os.kill(int(child), signal.SIGKILL)


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
    write_flushed(tmp_path / "file", b"content")
    with pytest.raises(FileExistsError):
        write_flushed(tmp_path / "file", b"other")

    assert (tmp_path / "file").read_bytes() == b"content"
    assert os.stat(tmp_path / "file").st_mode & 0o777 == 0o600
