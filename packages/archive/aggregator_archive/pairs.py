"""Pairs of rows, each packed into one uint64, so that millions of pairs sort and compare as integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from aggregator.index.codec.distinct import distinct
from aggregator_archive.arrays import Rows

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
