"""Free space: marks, sentences, and space allocated ahead of a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from aggregator.store.disk_space import (
    MAX_LOW_BYTES,
    DiskSpace,
    allocate_ahead,
    read_disk_space,
    rewrite_message,
)

MB = 10**6
LARGE = 10**12


def test_the_marks_are_fixed_on_a_large_and_relative_on_a_small_disk() -> None:
    """64 MiB, or a twentieth of the disk; writes resume at twice as much."""
    assert DiskSpace(Path("d"), 0, LARGE).low_bytes == MAX_LOW_BYTES
    assert DiskSpace(Path("d"), 0, LARGE).resume_bytes == 2 * MAX_LOW_BYTES
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
