"""Directories on disk: flushing the entries that were created or renamed in one."""

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
