"""Fingerprint join: all pairs of fingerprints within r <= 3 bits, by ten tables of block pairs.

Three bits touch at most three of five blocks, so two such fingerprints agree in two blocks (Manku et al.
2007, section 3). Each pair of blocks has a table with keys of 25 or 26 bits, whose buckets stay small for
many millions of articles; buckets of single blocks of 16 bits would grow with the archive.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from aggregator_archive.arrays import Rows
from aggregator_archive.buckets import (
    ROW_MASK,
    Entries,
    bucket_bounds,
    following_positions,
    join_large_buckets,
    order_by_smallest_keys,
    slices_by_count,
)
from aggregator_archive.columns import Columns
from aggregator_archive.pairs import Pairs, merge_pairs, pack_pairs

BLOCK_WIDTHS_BITS = (13, 13, 13, 13, 12)
BLOCK_PAIRS = tuple(combinations(range(len(BLOCK_WIDTHS_BITS)), 2))
KEY_BITS = 32  # 26 of two blocks and 6 of the space
MAX_BUCKET_ROWS = 4_096
_SPACE_BITS = 6


def join_bits(
    blocks: tuple[int, int], low: int, high: int, columns: Columns, rows: Rows, radius_bits: int
) -> tuple[Pairs, int]:
    """Candidates among ``rows`` (ascending) with ``low`` <= key < ``high`` in the table of two blocks.

    Returns:
        Ascending pairs within ``radius_bits`` bits, and the number of pairs of large buckets that were not
        compared.
    """
    table = _block_pair_entries(blocks, low, high, columns, rows)
    row = (table & ROW_MASK).astype(np.int64)
    starts, sizes = bucket_bounds(table)
    large = sizes > MAX_BUCKET_ROWS
    counts = np.repeat(starts + sizes, sizes) - np.arange(len(table)) - 1
    counts[np.repeat(large, sizes)] = 0
    at = np.flatnonzero(counts)
    found = []
    for part in slices_by_count(counts[at]):
        first, second = np.repeat(at[part], counts[at[part]]), following_positions(at[part], counts[at[part]])
        found.append(_pairs_within_radius(row[first], row[second], columns, radius_bits))
    large_bounds = zip(starts[large].tolist(), sizes[large].tolist(), strict=True)
    from_large, uncompared = join_large_buckets(
        (row[start : start + size] for start, size in large_bounds),
        lambda members: (
            order_by_smallest_keys(members, columns.sketch_keys[members]),
            members[np.lexsort((members, columns.fingerprint[members]))],
        ),
        lambda a, b: _pairs_within_radius(a, b, columns, radius_bits),
    )
    return merge_pairs(found + from_large), uncompared


def _block_pair_entries(
    blocks: tuple[int, int], low: int, high: int, columns: Columns, rows: Rows
) -> Entries:
    """Sorted entries with the values of two blocks as key.

    Only the low bits of the space number fit into the key; ``_pairs_within_radius`` compares spaces in full.
    """
    key = np.zeros(len(rows), np.uint64)
    fingerprint = columns.fingerprint[rows]
    for block in blocks:
        shift = np.uint64(sum(BLOCK_WIDTHS_BITS[block + 1 :]))
        width = BLOCK_WIDTHS_BITS[block]
        key = key << np.uint64(width) | fingerprint >> shift & np.uint64((1 << width) - 1)
    key = key << np.uint64(_SPACE_BITS) | columns.space[rows] & np.uint64((1 << _SPACE_BITS) - 1)
    chosen = (key >= low) & (key < high)
    return np.sort(pack_pairs(key[chosen], rows[chosen]))


def _pairs_within_radius(a: Rows, b: Rows, columns: Columns, radius_bits: int) -> Pairs:
    near = np.bitwise_count(columns.fingerprint[a] ^ columns.fingerprint[b]) <= radius_bits
    a, b = a[near], b[near]
    same_space = columns.space[a] == columns.space[b]
    return pack_pairs(a[same_space], b[same_space])
