"""Candidate pairs: articles that share two blocks of the fingerprint, or sketch keys.

Most share little else; the bitmap filter (``bitmap_filter.py``) rejects them early. A partition is a range of
keys of one table of blocks, or a range of rows looked up in the sorted sketch keys; partitions are
independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from aggregator_archive.arrays import (
    Array,
    Flags,
    Pairs,
    Rows,
    batches,
    load_or_compute,
    merge_pairs,
    pack_pairs,
    unpack_pairs,
)
from aggregator_archive.bitmap_filter import may_share
from aggregator_archive.buckets import (
    ROW_MASK,
    Entries,
    bucket_bounds,
    following_positions,
    join_large_buckets,
    order_by_smallest_keys,
    slices_by_count,
)
from aggregator_archive.columns import Columns, open_array, open_columns
from aggregator_archive.join_sketch_keys import join_sketch_keys
from aggregator_archive.sketch_keys import sorted_entries

_ROWS_PER_TABLE_RANGE = 1 << 22
_ROWS_PER_ROW_RANGE = 1 << 16
_PAIRS_PER_BATCH = 1 << 14


@dataclass(frozen=True, slots=True)
class Partition:
    """Range of keys in the table of two blocks; without ``blocks``, range of positions among the rows."""

    low: int
    high: int
    blocks: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """Name of the partition's file."""
        kind = "sketch-keys" if self.blocks is None else "blocks{}{}".format(*self.blocks)
        return f"{kind}-{self.low:010}"


def partitions(row_count: int, *, bits: bool, sketch_keys: bool) -> list[Partition]:
    """Partitions of the joins, each a few seconds of work."""
    found = []
    if bits:
        parts = row_count // _ROWS_PER_TABLE_RANGE + 1
        edges = [(k << KEY_BITS) // parts for k in range(parts + 1)]
        found += [Partition(low, high, blocks) for blocks in BLOCK_PAIRS for low, high in pairwise(edges)]
    if sketch_keys:
        found += [
            Partition(low, min(row_count, low + _ROWS_PER_ROW_RANGE))
            for low in range(0, row_count, _ROWS_PER_ROW_RANGE)
        ]
    return found


def join_to_file(
    partition: Partition, directory: str, radius_bits: int, min_containment: float, out: str
) -> int:
    """Join a partition of the columns in ``directory`` into ``out``; returns the number of uncompared pairs.

    Only pairs that may reach ``min_containment`` are kept.
    """

    def compute() -> dict[str, Array]:
        columns = open_columns(Path(directory))
        rows, entries = (open_array(Path(directory, f"{name}.npy")) for name in ("distinct", "entries"))
        pairs, uncompared = join_partition(partition, columns, rows, entries, radius_bits)
        return {
            "pairs": pairs[may_reach_containment(columns, pairs, min_containment)],
            "uncompared": np.array(uncompared),
        }

    return int(load_or_compute(Path(out), compute)["uncompared"])


def find_candidates(
    columns: Columns, rows: Rows, radius_bits: int, *, bits: bool = True, sketch_keys: bool = True
) -> Pairs:
    """Ascending candidate pairs of both joins of ``rows`` (ascending), for a corpus in memory."""
    entries = sorted_entries(columns.sketch_keys, rows)
    parts = partitions(len(rows), bits=bits, sketch_keys=sketch_keys)
    return merge_pairs([join_partition(part, columns, rows, entries, radius_bits)[0] for part in parts])


def join_partition(
    partition: Partition, columns: Columns, rows: Rows, key_entries: Entries, radius_bits: int
) -> tuple[Pairs, int]:
    """Ascending candidates of one partition of ``rows``, and the number of uncompared pairs.

    ``key_entries``: ``sketch_keys.sorted_entries`` of these rows.
    """
    low, high = partition.low, partition.high
    if partition.blocks is not None:
        return join_bits(partition.blocks, low, high, columns, rows, radius_bits)
    return join_sketch_keys(np.asarray(rows[low:high]), columns, key_entries)


def may_reach_containment(columns: Columns, pairs: Pairs, min_containment: float) -> Flags:
    """Which pairs may reach this containment according to their bitmaps; all if it is 0."""
    possible = np.ones(len(pairs), bool)
    if min_containment <= 0:
        return possible
    for batch in batches(len(pairs), _PAIRS_PER_BATCH):
        a, b = unpack_pairs(pairs[batch])
        sample_a, sample_b = columns.sample_size[a].astype(np.int64), columns.sample_size[b].astype(np.int64)
        size_a, size_b = columns.size[a], columns.size[b]
        # A sample is complete up to some hash: this share of the hashes can be in both samples.
        share = np.minimum(sample_a / np.maximum(1, size_a), sample_b / np.maximum(1, size_b))
        needed = min_containment * share * np.minimum(size_a, size_b)
        possible[batch] = may_share(columns.bitmap[a], columns.bitmap[b], sample_a, sample_b, needed)
    return possible


BLOCK_WIDTHS_BITS = (13, 13, 13, 13, 12)
BLOCK_PAIRS = tuple(combinations(range(len(BLOCK_WIDTHS_BITS)), 2))
KEY_BITS = 32  # 26 of two blocks and 6 of the space
MAX_BUCKET_ROWS = 4_096
_SPACE_BITS = 6


def join_bits(
    blocks: tuple[int, int], low: int, high: int, columns: Columns, rows: Rows, radius_bits: int
) -> tuple[Pairs, int]:
    """Candidates among ``rows`` (ascending) with ``low`` <= key < ``high`` in the table of two blocks.

    Returns ascending pairs within ``radius_bits`` bits, and the number of uncompared pairs of large buckets.
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
