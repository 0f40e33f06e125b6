"""A small file system in memory that tests may fill; needs the right to mount one (root on Linux)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

SMALL_DISK_BYTES = 24 * 2**20


@contextmanager
def small_disk(directory: Path, size: int = SMALL_DISK_BYTES) -> Iterator[Path]:
    """``directory`` as an empty disk of ``size`` bytes; skips the test where it cannot be mounted."""
    directory.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no disk can be mounted here ({error.strerror})")
    if done.returncode:
        pytest.skip(f"no disk can be mounted here ({done.stderr.strip()})")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=False)


def fill(disk: Path) -> Path:
    """Fill a disk with one file of another program; delete it to free the space."""
    path = disk / "other-program"
    with suppress(OSError), open(path, "wb", buffering=0) as file:
        while True:
            file.write(b"\x00" * 65536)
    with suppress(OSError), open(path, "ab", buffering=0) as file:
        while True:
            file.write(b"\x00" * 512)
    return path
