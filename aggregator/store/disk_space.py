"""Disk-space limits of a store: when to refuse writes, how much to allocate ahead of its log.

A store refuses writes below ``DiskSpace.low_bytes`` of free space and accepts them again from twice as much.
Below that mark only writes in progress need space; they get it from the allocation, which other programs
cannot take.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from dataclasses import dataclass
from pathlib import Path

MAX_LOW_BYTES = 64 * 2**20
MAX_AHEAD_BYTES = 16 * 2**20
_FALLOC_FL_KEEP_SIZE = 1
_LOW_PART = 20  # 1/20 of the disk, if that is less


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Free and total bytes of the disk that holds ``directory``."""

    directory: Path
    free_bytes: int
    total_bytes: int

    @property
    def low_bytes(self) -> int:
        """Below this much free space writes are refused."""
        return min(MAX_LOW_BYTES, self.total_bytes // _LOW_PART)

    @property
    def resume_bytes(self) -> int:
        """From this much free space on writes are accepted again."""
        return 2 * self.low_bytes

    @property
    def is_low(self) -> bool:
        """Whether writes must be refused."""
        return self.free_bytes < self.low_bytes

    @property
    def has_recovered(self) -> bool:
        """Whether writes can be accepted again."""
        return self.free_bytes >= self.resume_bytes

    def fits_copy(self, log_bytes: int) -> bool:
        """Whether a log of this size can be rewritten without filling the disk."""
        return self.free_bytes >= log_bytes + self.low_bytes

    @property
    def full_message(self) -> str:
        """One sentence for a disk on which writes are refused."""
        return (
            f"The disk of {self.directory} is full: {_megabytes(self.free_bytes)} free; articles can be "
            f"read, but none is stored until {_megabytes(self.resume_bytes)} are free: delete other files on "
            "it, or enlarge it."
        )


def read_disk_space(directory: Path) -> DiskSpace | None:
    """The space that the user of this process can use; None if the directory cannot be examined."""
    try:
        state = os.statvfs(directory)
    except OSError:
        return None
    return DiskSpace(directory, state.f_bavail * state.f_frsize, state.f_blocks * state.f_frsize)


def rewrite_message(disk: DiskSpace, log_bytes: int) -> str:
    """One sentence for a log that cannot be rewritten, since the disk has no room for a second copy."""
    return (
        f"The log in {disk.directory} cannot be rewritten and keeps growing: it has {_megabytes(log_bytes)}, "
        f"and a second copy must fit into the {_megabytes(disk.free_bytes)} that are free; enlarge the disk."
    )


def allocate_ahead(path: Path, size: int) -> None:
    """Allocate bytes beyond the end of a file without changing its length, where that is possible (Linux)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError), open(path, "ab") as file:
            fallocate = ctypes.CDLL(None).fallocate  # ``os.posix_fallocate`` would change the length
            end = ctypes.c_int64(file.tell())
            fallocate(file.fileno(), _FALLOC_FL_KEEP_SIZE, end, ctypes.c_int64(size))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
