"""Private files on this machine: locks, temporary directories, and writes that survive a power loss."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aggregator.errors import ConfigurationError

_TEMPORARY_PREFIX = "aggregator-"
_LOCK_NAME = "directory.lock"


def open_private(path: str, flags: int) -> int:
    """Opener of ``open`` for files that only this user can read."""
    return os.open(path, flags, 0o600)


def flush_directory(path: Path) -> None:
    """Wait until the entries of a directory are on disk: they survive a power loss. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_flushed(path: Path, content: bytes) -> None:
    """Write a new file that only this user can read, and wait until it is on disk. Raises OSError."""
    with open(path, "xb", opener=open_private) as file:
        file.write(content)
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


class TemporaryDirectory:
    """A new directory ``path`` that only this user can enter; ``remove`` or the context manager deletes it.

    It holds a locked file, so that creating one removes those of this user whose processes were killed. A
    child process that inherits ``lock_descriptor`` keeps the directory. Raises OSError.
    """

    def __init__(self) -> None:
        remove_leftovers()
        self.path = Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX))
        # Renamed only when it is locked: without this name nobody takes the directory for left over.
        created = self.path / f"{_LOCK_NAME}.new"
        self._lock = FileLock(created)
        self._lock.try_lock()
        created.rename(self.path / _LOCK_NAME)

    @property
    def lock_descriptor(self) -> int:
        """File descriptor of the lock."""
        return self._lock.descriptor

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Delete the directory with its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close(unlock=False)


def remove_leftovers() -> None:
    """Delete the temporary directories of this user whose processes have ended."""
    for path in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY_PREFIX}*/{_LOCK_NAME}"):
        try:
            if path.parent.is_symlink() or path.parent.stat().st_uid != os.getuid():
                continue
            lock = FileLock(path)
        except OSError:  # removed meanwhile
            continue
        if lock.try_lock():
            shutil.rmtree(path.parent, ignore_errors=True)
        lock.close(unlock=False)
