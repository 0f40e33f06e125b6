"""Temporary directories of processes that may be killed: the next start removes what they left.

Each directory holds a locked file. The kernel releases the lock with its last holder, so a directory whose
lock is free is left over.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from aggregator.store.file_lock import FileLock

_PREFIX = "aggregator-"
_LOCK_NAME = "directory.lock"


class TemporaryDirectory:
    """A new directory ``path`` that only this user can enter; ``remove`` or the context manager deletes it.

    A child process that inherits ``lock_descriptor`` keeps the directory when this process is killed.
    Creating one removes those that killed processes of this user left. Raises OSError.
    """

    def __init__(self) -> None:
        remove_leftovers()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
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
    """Delete the directories of this user whose processes have ended."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK_NAME}"):
        try:
            if path.parent.is_symlink() or path.parent.stat().st_uid != os.getuid():
                continue
            lock = FileLock(path)
        except OSError:  # removed meanwhile
            continue
        if lock.try_lock():
            shutil.rmtree(path.parent, ignore_errors=True)
        lock.close(unlock=False)
