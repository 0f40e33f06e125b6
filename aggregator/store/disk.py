"""Disk of this machine: private files, their owner, locks, writes that survive a power loss, free space.

A store refuses writes below ``DiskSpace.low_bytes`` of free space and accepts them again from twice as much.
Below that mark only writes in progress need space; they get it from what was allocated ahead of the log,
which other programs cannot take.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aggregator.errors import ConfigurationError

TEMPORARY_PREFIX = "aggregator-"


def open_private(path: str, flags: int) -> int:
    """Opener of ``open`` for files that only this user can read."""
    return os.open(path, flags, 0o600)


def flush_directory(path: Path) -> None:
    """Wait until the entries of a directory are on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_flushed(path: Path, parts: Iterable[bytes]) -> None:
    """Write a new file that only this user can read, and wait until it is on disk. Raises OSError."""
    with open(path, "xb", opener=open_private) as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


class FileLock:
    """An flock on ``path``; the content of the file identifies the holder. Raises OSError.

    The kernel releases it when its last holder exits or is killed. A child process that inherits
    ``descriptor`` holds it too.
    """

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def try_lock(self) -> bool:
        """Acquire the lock without waiting; False if another process holds it."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @property
    def holder_info(self) -> str:
        """Text that the holder wrote into the file; "" if none."""
        return os.fsdecode(os.pread(self.descriptor, 4096, 0))

    @holder_info.setter
    def holder_info(self, text: str) -> None:
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, os.fsencode(text), 0)

    def close(self, *, unlock: bool) -> None:
        """Close the file. With ``unlock`` the lock is also released for the processes that inherited it."""
        if unlock:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        os.close(self.descriptor)


@contextmanager
def exclude_service(data_dir: Path) -> Iterator[None]:
    """Hold the locks of a data directory. Raises ConfigurationError if a service or its server uses it."""
    locks = [FileLock(data_dir / name) for name in ("lock", "server.lock")]
    try:
        if not all(lock.try_lock() for lock in locks):
            raise ConfigurationError(
                f"data_dir: {data_dir} is in use by process {locks[0].holder_info or 'unknown'}; stop that "
                "service first, or choose another directory."
            )
        yield
    finally:
        for lock in locks:
            lock.close(unlock=False)


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """A new directory that only this user can enter, deleted at the end. Raises OSError."""
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, ignore_cleanup_errors=True) as path:
        yield Path(path)


# What a store writes into its data directory.
_STORE_FILES = ("*lock", "server.log*", "*.json", "appendonlydir", "appendonlydir/*")


def _store_files(data_dir: Path) -> Iterator[tuple[Path, os.stat_result]]:
    return ((path, path.lstat()) for pattern in _STORE_FILES for path in data_dir.glob(pattern))


def give_to_owner(data_dir: Path) -> None:
    """Give what root wrote here for a stopped store to the owner of the directory. Raises OSError."""
    owner = data_dir.stat()
    if os.geteuid() == 0 != owner.st_uid:
        for path, state in _store_files(data_dir):
            if state.st_uid == 0 and (path.is_dir() or state.st_nlink == 1):  # no file from elsewhere
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def require_access(data_dir: Path) -> None:
    """Raises ConfigurationError if files in one's own directory belong to another user; OSError."""
    uid = os.geteuid()
    for path, state in _store_files(data_dir) if data_dir.stat().st_uid == uid else ():
        if state.st_uid != uid and not os.access(path, os.R_OK | os.W_OK, effective_ids=True):
            owner = f"user {state.st_uid}" if state.st_uid else "root"
            raise ConfigurationError(
                f"data_dir: {path} belongs to {owner}, not to user {uid}: `chown -R {uid}: {data_dir}`."
            )


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
    def is_low(self) -> bool:
        """Whether writes must be refused."""
        return self.free_bytes < self.low_bytes

    @property
    def has_recovered(self) -> bool:
        """Whether writes can be accepted again."""
        return self.free_bytes >= 2 * self.low_bytes

    def fits_copy(self, log_bytes: int) -> bool:
        """Whether a log of this size can be rewritten without filling the disk."""
        return self.free_bytes >= log_bytes + self.low_bytes

    @property
    def full_message(self) -> str:
        """One sentence for a disk on which writes are refused."""
        return (
            f"The disk of {self.directory} is full: {_megabytes(self.free_bytes)} free; articles can be "
            f"read, but none is stored until {_megabytes(2 * self.low_bytes)} are free: delete other files "
            "on it, or enlarge it."
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
            fallocate(file.fileno(), _FALLOC_FL_KEEP_SIZE, ctypes.c_int64(file.tell()), ctypes.c_int64(size))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
