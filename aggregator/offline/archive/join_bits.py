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
    bucket_bounds,
    following_positions,
    order_by_smallest_keys,
    slices_by_count,
    uncompared_pairs,
    window_pairs,
)
from aggregator.offline.archive.columns import Columns
from aggregator.offline.archive.pairs import Pairs, Rows, merge_pairs, order_pairs, pack_pairs

BLOCK_WIDTHS_BITS = (13, 13, 13, 13, 12)
BLOCK_PAIRS = tuple(combinations(range(len(BLOCK_WIDTHS_BITS)), 2))
KEY_BITS = 32  # 26 of two blocks and 6 of the space
MAX_BUCKET_ROWS = 4_096
_SPACE_BITS = 6
_ROW_MASK = np.uint64(0xFFFFFFFF)


def join_bits(
    blocks: tuple[int, int], low: int, high: int, columns: Columns, rows: Rows, radius_bits: int
) -> tuple[Pairs, int]:
    """Pairs of ``rows`` (ascending) in the buckets ``low`` <= key < ``high`` of a table; how many were left out."""
    table = _block_pair_entries(blocks, low, high, columns, rows)
    row = (table & _ROW_MASK).astype(np.int64)
    starts, sizes = bucket_bounds(table)
    counts = np.repeat(starts + sizes, sizes) - np.arange(len(table)) - 1
    counts[np.repeat(sizes > MAX_BUCKET_ROWS, sizes)] = 0
    at = np.flatnonzero(counts)
    found = []
    for some in slices_by_count(counts[at]):
        first, second = np.repeat(at[some], counts[at[some]]), following_positions(at[some], counts[at[some]])
        found.append(_pairs_within_radius(row[first], row[second], columns, radius_bits))
    skipped = 0
    for start, size in zip(
        starts[sizes > MAX_BUCKET_ROWS].tolist(), sizes[sizes > MAX_BUCKET_ROWS].tolist(), strict=True
    ):
        pairs, more = _join_large_bucket(row[start : start + size], columns, radius_bits)
        found.append(pairs)
        skipped += more
    return merge_pairs(found), skipped


def _block_pair_entries(
    blocks: tuple[int, int], low: int, high: int, columns: Columns, rows: Rows
) -> Entries:
    """Sorted entries of two blocks' values. Spaces may share keys (and are told apart later), but hardly do."""
    key = np.zeros(len(rows), np.uint64)
    fingerprint = columns.fingerprint[rows]
    for block in blocks:
        shift = np.uint64(sum(BLOCK_WIDTHS_BITS[block + 1 :]))
        key = key << np.uint64(BLOCK_WIDTHS_BITS[block]) | fingerprint >> shift & np.uint64(
            (1 << BLOCK_WIDTHS_BITS[block]) - 1
        )
    key = key << np.uint64(_SPACE_BITS) | columns.space[rows] & np.uint64((1 << _SPACE_BITS) - 1)
    chosen = (key >= low) & (key < high)
    return np.sort(pack_pairs(key[chosen], rows[chosen]))


def _pairs_within_radius(a: Rows, b: Rows, columns: Columns, radius_bits: int) -> Pairs:
    near = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b]) <= radius_bits
    a, b = a[near], b[near]
    same = columns.space[a] == columns.space[b]
    return pack_pairs(a[same], b[same])


def _join_large_bucket(members: Rows, columns: Columns, radius_bits: int) -> tuple[Pairs, int]:
    """Neighbours by smallest hashes, and by fingerprint."""
    orders = (
        order_by_smallest_keys(members, columns.bands[members]),
        members[np.lexsort((members, columns.fingerprint[members]))],
    )
    pairs = [order_pairs(*window_pairs(order)) for order in orders]
    found = [_pairs_within_radius(*one, columns, radius_bits) for one in pairs]
    return merge_pairs(found), uncompared_pairs(len(members), sum(len(a) for a, _ in pairs))
