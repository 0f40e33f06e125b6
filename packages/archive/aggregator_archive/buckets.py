"""Buckets of sorted entries: uint64 numbers with a key in the upper half and a row in the lower.

Sorting entries groups the rows of one key, ascending. Comparing all rows of a large bucket would be
quadratic, so its rows are sorted by a property that near-duplicates share, and each row is compared with
the next ``NEIGHBORS_PER_ROW`` only (the sorted-neighborhood method, Hernandez and Stolfo 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from aggregator_archive.arrays import Hashes, Keys, Pairs, Rows, merge_pairs, order_pairs

NEIGHBORS_PER_ROW = 8
_PAIRS_PER_SLICE = 1 << 21

Entries = Keys
KEY_MASK = np.uint64(0xFFFFFFFF00000000)
ROW_MASK = np.uint64(0xFFFFFFFF)


def bucket_bounds(entries: Entries) -> tuple[Rows, Rows]:
    """Start and size of each bucket of the ascending entries."""
    keys = entries & KEY_MASK
    starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1])).astype(np.int64)
    return starts, np.diff(starts, append=len(entries))


def following_positions(positions: Rows, counts: Rows) -> Rows:
    """The ``counts`` positions that follow each position: (n,), n the sum of ``counts``."""
    before = np.cumsum(counts) - counts
    following: Rows = np.arange(int(counts.sum())) + np.repeat(positions + 1 - before, counts)
    return following


def slices_by_count(counts: Rows, max_count: int = _PAIRS_PER_SLICE) -> Iterator[slice]:
    """Slices whose counts sum to at most ``max_count``; a larger count gets its own slice."""
    total = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = int(total[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(total, done + max_count, side="right")))
        yield slice(start, end)
        start = end


def order_by_smallest_keys(members: Rows, keys: Hashes) -> Rows:
    """Members sorted by their four smallest keys; ``keys``: (n, KEYS_PER_ARTICLE), ascending."""
    ordered: Rows = members[np.lexsort((members, keys[:, 3], keys[:, 2], keys[:, 1], keys[:, 0]))]
    return ordered


def join_large_buckets(
    buckets: Iterable[Rows],
    sort_orders: Callable[[Rows], Sequence[Rows]],
    select: Callable[[Rows, Rows], Pairs],
) -> tuple[list[Pairs], int]:
    """Compare each row of each bucket with its next neighbors in the ``sort_orders`` of its rows.

    ``select``: the candidates among pairs of rows a < b. Returns those of each bucket, and the number
    of pairs that were not compared.
    """
    candidates, uncompared = [], 0
    for members in buckets:
        compared = [order_pairs(*_window_pairs(order)) for order in sort_orders(members)]
        candidates.append(merge_pairs([select(a, b) for a, b in compared]))
        all_pairs = len(members) * (len(members) - 1) // 2
        uncompared += max(0, all_pairs - sum(len(a) for a, _ in compared))
    return candidates, uncompared


def _window_pairs(ordered: Rows) -> tuple[Rows, Rows]:
    """Each row with the next ``NEIGHBORS_PER_ROW`` rows in this order."""
    steps = range(1, min(NEIGHBORS_PER_ROW, len(ordered) - 1) + 1)
    return (
        np.concatenate([ordered[:-step] for step in steps]),
        np.concatenate([ordered[step:] for step in steps]),
    )
