"""Type aliases of the arrays of this package, and the batches in which they are processed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]  # row numbers, positions or counts
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint32]
Keys = npt.NDArray[np.uint64]  # a key in the upper half, a position or row in the lower


def batches(count: int, size: int) -> Iterator[slice]:
    """Slices that cover ``range(count)``, each of at most ``size`` items."""
    return (slice(start, start + size) for start in range(0, count, size))
