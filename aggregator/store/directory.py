"""Private files, and files and directories that survive a power loss once a function has returned."""

from __future__ import annotations

import os
from pathlib import Path


def flush_directory(path: Path) -> None:
    """Wait until the entries of a directory are on disk: they survive a power loss. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_private(path: str, flags: int) -> int:
    """Opener of ``open`` for files that only this user can read."""
    return os.open(path, flags, 0o600)


def write_flushed(path: Path, content: bytes) -> None:
    """Write a new file that only this user can read, and wait until it is on disk. Raises OSError."""
    with open(path, "xb", opener=open_private) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
