"""Files that are there when they are whole, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def save(file: Path, **arrays: npt.NDArray[Any]) -> None:
    """Write named arrays to ``file``, whole or not at all, whoever else may write the same."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    with open(part, "wb") as out:
        np.savez(out, **arrays)  # type: ignore[arg-type]
    os.replace(part, file)


def write(file: Path, data: bytes) -> None:
    """Write bytes to ``file``, whole or not at all."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    part.write_bytes(data)
    os.replace(part, file)
