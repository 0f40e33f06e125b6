"""Type aliases of the arrays of this package, and the batches in which they are processed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import distinct

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]  # row numbers, positions or counts
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint32]
Keys = npt.NDArray[np.uint64]  # a key in the upper half, a position or row in the lower


def batches(count: int, size: int) -> Iterator[slice]:
    """Slices that cover ``range(count)``, each of at most ``size`` items."""
    return (slice(start, start + size) for start in range(0, count, size))


Pairs = npt.NDArray[np.uint64]  # the first row in the upper half, the second in the lower
_FIRST_ROW_SHIFT, _SECOND_ROW_MASK = np.uint64(32), np.uint64(0xFFFFFFFF)


def pack_pairs(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Pairs:
    """Pack ``first`` into the upper half and ``second`` into the lower; both 0 <= n < 2**32."""
    pairs: Pairs = first.astype(np.uint64) << _FIRST_ROW_SHIFT | second.astype(np.uint64)
    return pairs


def order_pairs(a: Rows, b: Rows) -> tuple[Rows, Rows]:
    """Two columns of rows with the smaller row of each pair in the first."""
    return np.minimum(a, b), np.maximum(a, b)


def unpack_pairs(pairs: Pairs) -> tuple[Rows, Rows]:
    """The two rows of each pair."""
    return (pairs >> _FIRST_ROW_SHIFT).astype(np.int64), (pairs & _SECOND_ROW_MASK).astype(np.int64)


def merge_pairs(parts: Sequence[Pairs]) -> Pairs:
    """The distinct pairs of all parts, ascending."""
    return distinct(np.concatenate([np.empty(0, np.uint64), *parts]))


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
