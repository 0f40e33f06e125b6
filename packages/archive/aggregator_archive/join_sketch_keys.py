"""Sketch-key join: pairs of articles that share enough of their sketch keys.

The partners of a row are the rows that follow it in its buckets of the sorted entries. The fewer articles
have a key, the more it weighs: a pair is a candidate if the shared weights sum to ``MIN_SHARED_WEIGHT``, or
if it shares all keys of a very short sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aggregator_archive.arrays import Flags, Hashes, Keys, Pairs, Rows, merge_pairs, pack_pairs
from aggregator_archive.buckets import (
    KEY_MASK,
    ROW_MASK,
    Entries,
    following_positions,
    join_large_buckets,
    order_by_smallest_keys,
    slices_by_count,
)
from aggregator_archive.columns import Columns
from aggregator_archive.sketch_keys import first_occurrences

HASH_WEIGHTS = ((16, 4), (64, 3), (256, 1))  # (articles that have a key, weight of the key)
MIN_SHARED_WEIGHT = 4
MAX_BUCKET_ROWS = HASH_WEIGHTS[-1][0]
LARGE_BUCKET_MIN_COMMON_KEYS = 6  # sketch keys that neighbors in a large bucket must share
_WEIGHT_MAX_ROWS = np.array([rows for rows, _ in HASH_WEIGHTS])
_WEIGHTS = np.array([weight for _, weight in HASH_WEIGHTS], np.uint64)
# A shared key is one uint64: row within the block (bits 36 and up), partner row (bits 4-35), weight (bits
# 0-3).
_BLOCK_ROW_SHIFT, _PARTNER_SHIFT, _WEIGHT_MASK = np.uint64(36), np.uint64(4), np.uint64(15)


@dataclass(frozen=True, slots=True, eq=False)
class _BlockEntries:
    """Location of the sketch keys of a block of rows in the sorted entries, row after row.

    row                       position of the row in the block
    position                  position of its entry among the entries
    bucket_start, bucket_end  bounds of its bucket
    """

    row: Rows
    position: Rows
    bucket_start: Rows
    bucket_end: Rows


def join_sketch_keys(block: Rows, columns: Columns, key_entries: Entries) -> tuple[Pairs, int]:
    """Ascending candidates whose smaller row is in ``block`` (at most 2**20 rows).

    Second: the number of pairs not compared in the large buckets whose first row is in ``block``.
    """
    entries = _locate_entries(block, columns, key_entries)
    sizes = entries.bucket_end - entries.bucket_start
    large = sizes > MAX_BUCKET_ROWS
    counts = np.where(large, 0, entries.bucket_end - entries.position - 1)
    weights = _WEIGHTS[np.searchsorted(_WEIGHT_MAX_ROWS, np.minimum(sizes, MAX_BUCKET_ROWS))]
    ends = np.searchsorted(entries.row, np.arange(len(block) + 1))
    short = np.asarray(columns.sample_size) < MIN_SHARED_WEIGHT
    found = []
    for part in slices_by_count(np.bincount(entries.row, counts, len(block)).astype(np.int64)):
        own = slice(int(ends[part.start]), int(ends[part.stop]))
        heads = entries.row[own].astype(np.uint64) << _BLOCK_ROW_SHIFT | weights[own]
        partners = key_entries[following_positions(entries.position[own], counts[own])] & ROW_MASK
        shared = np.repeat(heads, counts[own]) | partners << _PARTNER_SHIFT
        found.append(_pairs_above_weight(shared, block, columns.sample_size, short))
    first_of_large = np.flatnonzero(large & (entries.position == entries.bucket_start))
    bounds = zip(
        entries.bucket_start[first_of_large].tolist(),
        entries.bucket_end[first_of_large].tolist(),
        strict=True,
    )
    from_large, uncompared = join_large_buckets(
        ((key_entries[start:end] & ROW_MASK).astype(np.int64) for start, end in bounds),
        lambda members: (order_by_smallest_keys(members, columns.sketch_keys[members]),),
        lambda a, b: _pairs_with_common_keys(a, b, columns),
    )
    return merge_pairs(found + from_large), uncompared


def _locate_entries(block: Rows, columns: Columns, key_entries: Entries) -> _BlockEntries:
    sketch_keys = columns.sketch_keys[block]
    row, column = np.nonzero(first_occurrences(sketch_keys))
    wanted = pack_pairs(sketch_keys[row, column], block[row])
    order = np.argsort(wanted)
    wanted = wanted[order]  # ascending searches read the entries front to back
    located = np.empty((3, len(wanted)), np.int64)
    located[0, order] = np.searchsorted(key_entries, wanted)
    located[1, order] = np.searchsorted(key_entries, wanted & KEY_MASK)
    located[2, order] = np.searchsorted(key_entries, wanted | ROW_MASK, side="right")
    return _BlockEntries(row, *located)


def _pairs_above_weight(
    shared: Keys, block: Rows, sample_size: npt.NDArray[np.uint16], has_short_sample: Flags
) -> Pairs:
    """Pairs whose shared keys weigh at least ``MIN_SHARED_WEIGHT``; sorts ``shared`` in place.

    ``shared``: one number per shared key, as laid out above. A sample of fewer than ``MIN_SHARED_WEIGHT``
    hashes matches if all of it is shared.
    """
    shared.sort()
    pairs = shared >> _PARTNER_SHIFT
    starts = np.flatnonzero(np.diff(pairs, prepend=~pairs[:1]))
    if not len(starts):
        return pairs
    pairs = pairs[starts]
    enough = np.add.reduceat(shared & _WEIGHT_MASK, starts) >= MIN_SHARED_WEIGHT
    a, b = block[(pairs >> np.uint64(32)).astype(np.int64)], (pairs & ROW_MASK).astype(np.int64)
    if has_short_sample.any():
        common = np.diff(starts, append=len(shared))
        few = np.flatnonzero(~enough & (has_short_sample[a] | has_short_sample[b]))
        enough[few] = common[few] >= np.minimum(sample_size[a[few]], sample_size[b[few]])
    return pack_pairs(a[enough], b[enough])


def _pairs_with_common_keys(a: Rows, b: Rows, columns: Columns) -> Pairs:
    near = have_common_keys(columns.sketch_keys[a], columns.sketch_keys[b], LARGE_BUCKET_MIN_COMMON_KEYS)
    return pack_pairs(a[near], b[near])


def have_common_keys(a: Hashes, b: Hashes, min_common: int) -> Flags:
    """Whether two articles share ``min_common`` sketch keys, or all keys of the shorter sample.

    ``a``, ``b``: (n, KEYS_PER_ARTICLE) each, ascending; a short sample repeats its last hash.
    """
    both = np.sort(np.concatenate([a, b], axis=-1), axis=-1)
    repeats_a, repeats_b = _count_repeats(a), _count_repeats(b)
    common = _count_repeats(both) - repeats_a - repeats_b
    enough: Flags = common >= np.minimum(min_common, a.shape[-1] - np.maximum(repeats_a, repeats_b))
    return enough


def _count_repeats(hashes: Hashes) -> Rows:
    """Number of hashes along the last axis (ascending) that equal the one before."""
    repeats: Rows = (hashes[..., 1:] == hashes[..., :-1]).sum(axis=-1)
    return repeats
