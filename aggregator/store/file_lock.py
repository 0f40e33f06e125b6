"""A lock on a file, kept by the kernel: it ends with its last holder, however that dies.

A process started with ``descriptor`` among its inherited files holds the lock too.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FileLock:
    """An flock on ``path``, and a note in that file for whoever finds it locked. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def try_lock(self) -> bool:
        """Take it if it is free."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @property
    def holder_info(self) -> str:
        """What the holder wrote; "" when nothing."""
        return os.fsdecode(os.pread(self.descriptor, 4096, 0))

    @holder_info.setter
    def holder_info(self, text: str) -> None:
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, os.fsencode(text), 0)

    def close(self, *, unlock: bool) -> None:
        """Let go of it. Without ``unlock`` other processes that inherited it go on holding it."""
        if unlock:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        os.close(self.descriptor)
