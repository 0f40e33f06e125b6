"""Which rows stand in one bucket? Entries, sorted: a key in the upper half of a uint64, a row in the lower.

Sorting them brings the rows of one key together, ascending. A bucket that is too large is not compared in full, since
that would be quadratic: its rows are put in order of something that near-copies have alike, and each is paired with
the next ``WINDOW``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from aggregator.offline.archive.pairs import Rows

NEIGHBORS_PER_ROW = 8
_PAIRS_PER_SLICE = 1 << 21

Entries = npt.NDArray[np.uint64]
KEY_MASK = np.uint64(0xFFFFFFFF00000000)


def bucket_bounds(entries: Entries) -> tuple[Rows, Rows]:
    """Where each bucket of the ascending entries starts, and its size."""
    keys = entries & KEY_MASK
    starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1])).astype(np.int64)
    return starts, np.diff(starts, append=len(entries))


def following_positions(positions: Rows, counts: Rows) -> Rows:
    """The ``counts`` positions that follow each position: (n,), n the sum of ``counts``."""
    before = np.cumsum(counts) - counts
    found: Rows = np.arange(int(counts.sum())) + np.repeat(positions + 1 - before, counts)
    return found


def slices_by_count(counts: Rows, max_count: int = _PAIRS_PER_SLICE) -> Iterator[slice]:
    """Cut so that the counts of each slice come to ``most`` at most, or it is a single one."""
    total = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = int(total[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(total, done + max_count, side="right")))
        yield slice(start, end)
        start = end


def order_by_smallest_keys(members: Rows, keys: npt.NDArray[np.uint32]) -> Rows:
    """Members in the order of their smallest hashes; their ascending (n, BANDS) ``bands``."""
    found: Rows = members[np.lexsort((members, keys[:, 3], keys[:, 2], keys[:, 1], keys[:, 0]))]
    return found


def window_pairs(ordered: Rows) -> tuple[Rows, Rows]:
    """Each row with the next ``WINDOW`` in this order."""
    size = len(ordered)
    first = np.concatenate(
        [np.arange(size - step) for step in range(1, min(NEIGHBORS_PER_ROW, size - 1) + 1)]
    )
    second = np.concatenate(
        [np.arange(step, size) for step in range(1, min(NEIGHBORS_PER_ROW, size - 1) + 1)]
    )
    return ordered[first], ordered[second]


def uncompared_pairs(size: int, compared: int) -> int:
    """How many pairs of a bucket of so many rows were not compared."""
    return max(0, size * (size - 1) // 2 - compared)
