"""Which fingerprints are within r <= 3 bits of one another?

Three bits lie in at most three of five blocks, so two such fingerprints agree in two blocks (Manku et al. 2007,
section 3). For each two blocks there is a table of keys of 25 or 26 bits, whose buckets stay small in archives of many
millions, where those of single blocks of 16 bits would grow with the archive.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from aggregator.offline.archive.buckets import (
    Entries,
    buckets,
    by_smallest,
    followers,
    left_out,
    neighbours,
    slices,
)
from aggregator.offline.archive.columns import Columns
from aggregator.offline.archive.pairs import Pairs, Rows, merged, ordered, packed

WIDTHS = (13, 13, 13, 13, 12)
TABLES = tuple(combinations(range(len(WIDTHS)), 2))
KEY_BITS = 32  # 26 of two blocks and 6 of the space
BUCKET_MAX = 4_096
_SPACE_BITS = 6
_ROW = np.uint64(0xFFFFFFFF)


def join_bits(
    blocks: tuple[int, int], low: int, high: int, columns: Columns, rows: Rows, radius: int
) -> tuple[Pairs, int]:
    """Pairs of ``rows`` (ascending) in the buckets ``low`` <= key < ``high`` of a table; how many were left out."""
    table = _table(blocks, low, high, columns, rows)
    row = (table & _ROW).astype(np.int64)
    starts, sizes = buckets(table)
    counts = np.repeat(starts + sizes, sizes) - np.arange(len(table)) - 1
    counts[np.repeat(sizes > BUCKET_MAX, sizes)] = 0
    at = np.flatnonzero(counts)
    found = []
    for some in slices(counts[at]):
        first, second = np.repeat(at[some], counts[at[some]]), followers(at[some], counts[at[some]])
        found.append(_near(row[first], row[second], columns, radius))
    skipped = 0
    for start, size in zip(
        starts[sizes > BUCKET_MAX].tolist(), sizes[sizes > BUCKET_MAX].tolist(), strict=True
    ):
        pairs, more = _large(row[start : start + size], columns, radius)
        found.append(pairs)
        skipped += more
    return merged(found), skipped


def _table(blocks: tuple[int, int], low: int, high: int, columns: Columns, rows: Rows) -> Entries:
    """Sorted entries of two blocks' values. Spaces may share keys (and are told apart later), but hardly do."""
    key = np.zeros(len(rows), np.uint64)
    fingerprint = columns.fingerprint[rows]
    for block in blocks:
        shift = np.uint64(sum(WIDTHS[block + 1 :]))
        key = key << np.uint64(WIDTHS[block]) | fingerprint >> shift & np.uint64((1 << WIDTHS[block]) - 1)
    key = key << np.uint64(_SPACE_BITS) | columns.space[rows] & np.uint64((1 << _SPACE_BITS) - 1)
    chosen = (key >= low) & (key < high)
    return np.sort(packed(key[chosen], rows[chosen]))


def _near(a: Rows, b: Rows, columns: Columns, radius: int) -> Pairs:
    near = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b]) <= radius
    a, b = a[near], b[near]
    same = columns.space[a] == columns.space[b]
    return packed(a[same], b[same])


def _large(members: Rows, columns: Columns, radius: int) -> tuple[Pairs, int]:
    """Neighbours by smallest hashes, and by fingerprint."""
    orders = (
        by_smallest(members, columns.bands[members]),
        members[np.lexsort((members, columns.fingerprint[members]))],
    )
    pairs = [ordered(*neighbours(order)) for order in orders]
    found = [_near(*one, columns, radius) for one in pairs]
    return merged(found), left_out(len(members), sum(len(a) for a, _ in pairs))
