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

WINDOW = 8
_PAIRS_AT_ONCE = 1 << 21

Entries = npt.NDArray[np.uint64]
KEYS = np.uint64(0xFFFFFFFF00000000)


def buckets(listed: Entries) -> tuple[Rows, Rows]:
    """Where each bucket of the ascending entries starts, and its size."""
    keys = listed & KEYS
    starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1])).astype(np.int64)
    return starts, np.diff(starts, append=len(listed))


def followers(at: Rows, counts: Rows) -> Rows:
    """The ``counts`` positions that follow each position: (n,), n the sum of ``counts``."""
    before = np.cumsum(counts) - counts
    found: Rows = np.arange(int(counts.sum())) + np.repeat(at + 1 - before, counts)
    return found


def slices(counts: Rows, most: int = _PAIRS_AT_ONCE) -> Iterator[slice]:
    """Cut so that the counts of each slice come to ``most`` at most, or it is a single one."""
    total = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = int(total[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(total, done + most, side="right")))
        yield slice(start, end)
        start = end


def by_smallest(members: Rows, bands: npt.NDArray[np.uint32]) -> Rows:
    """Members in the order of their smallest hashes; their ascending (n, BANDS) ``bands``."""
    found: Rows = members[np.lexsort((members, bands[:, 3], bands[:, 2], bands[:, 1], bands[:, 0]))]
    return found


def neighbours(ordered: Rows) -> tuple[Rows, Rows]:
    """Each row with the next ``WINDOW`` in this order."""
    size = len(ordered)
    first = np.concatenate([np.arange(size - step) for step in range(1, min(WINDOW, size - 1) + 1)])
    second = np.concatenate([np.arange(step, size) for step in range(1, min(WINDOW, size - 1) + 1)])
    return ordered[first], ordered[second]


def left_out(size: int, compared: int) -> int:
    """How many pairs of a bucket of so many rows were not compared."""
    return max(0, size * (size - 1) // 2 - compared)
