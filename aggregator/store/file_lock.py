"""File lock (flock): the kernel releases it when its last holder exits or is killed.

A child process that inherits ``descriptor`` holds the lock too.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FileLock:
    """An flock on ``path``; the content of the file identifies the holder. Raises OSError."""

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
