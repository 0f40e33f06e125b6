"""Files that are there when they are whole, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt


def save_arrays(file: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write named arrays to ``file``, whole or not at all."""
    with atomic_write(file) as out:
        np.savez(out, **arrays)  # type: ignore[arg-type]


def write_bytes(file: Path, data: bytes) -> None:
    """Write bytes to ``file``, whole or not at all."""
    with atomic_write(file) as out:
        out.write(data)


@contextmanager
def atomic_write(file: Path) -> Iterator[BinaryIO]:
    """A file to write into that takes the place of ``file`` when all is written; after an error it stays aside.

    Its name is of this process alone: two workers may be given the same task when one was thought dead.
    """
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    with open(part, "wb") as out:
        yield out
    os.replace(part, file)
