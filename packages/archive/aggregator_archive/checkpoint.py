"""Checkpoint files, written whole or not at all, so that an interrupted run can resume."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from aggregator_archive.arrays import Array


def save_once(file: Path, compute: Callable[[], Mapping[str, Array]]) -> None:
    """Compute named arrays and write them to ``file``, unless the file exists already."""
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        with atomic_write(file) as out:
            np.savez(out, **compute())  # type: ignore[arg-type]  # the stubs miss named arrays


def load_or_compute(file: Path, compute: Callable[[], Mapping[str, Array]]) -> dict[str, Array]:
    """The named arrays in ``file``; computed and written first if the file is missing."""
    save_once(file, compute)
    with np.load(file) as arrays:
        return dict(arrays)


def write_bytes(file: Path, data: bytes) -> None:
    """Write bytes to ``file``, whole or not at all."""
    with atomic_write(file) as out:
        out.write(data)


@contextmanager
def atomic_write(file: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``file`` when the block ends; after an error it is left behind.

    Its name contains the process id: a scheduler may run one task in two workers when it believes one dead.
    """
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    with open(part, "wb") as out:
        yield out
    os.replace(part, file)
