"""Which articles share enough of their smallest hashes?

All bands of all articles are one sorted list (``bands.entries``). Each row's partners are those that follow it in the
buckets it stands in; they are counted by sorting them. Some shingles are in every tenth article ("one of the"): one
that is shared counts the more, the fewer have it, and what two articles share must come to ``ENOUGH``, or be all that
one of them has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aggregator.offline.archive.buckets import (
    KEY_MASK,
    Entries,
    following_positions,
    order_by_smallest_keys,
    slices_by_count,
    uncompared_pairs,
    window_pairs,
)
from aggregator.offline.archive.columns import Columns
from aggregator.offline.archive.pairs import Pairs, Rows, merge_pairs, order_pairs, pack_pairs
from aggregator.offline.archive.sketch_keys import first_occurrences

HASH_WEIGHTS = ((16, 4), (64, 3), (256, 1))  # (rows that have a hash, what it counts)
MIN_SHARED_WEIGHT = 4
MAX_BUCKET_ROWS = HASH_WEIGHTS[-1][0]
LARGE_BUCKET_MIN_COMMON_KEYS = 6  # bands, between neighbours in a larger bucket
_WEIGHT_MAX_ROWS = np.array([rows for rows, _ in HASH_WEIGHTS])
_WEIGHTS = np.array([weight for _, weight in HASH_WEIGHTS], np.uint64)
_ROW_MASK = np.uint64(0xFFFFFFFF)
# Of a number that stands for a shared hash: where the block's row begins, the partner's row, and what the hash counts.
_BLOCK_ROW_SHIFT, _PARTNER_SHIFT, _WEIGHT_MASK = np.uint64(36), np.uint64(4), np.uint64(15)


@dataclass(frozen=True, slots=True, eq=False)
class _BlockEntries:
    """Where the bands of a block of rows stand in the list, row after row.

    row    position of the row in the block
    at     position of its entry in the list
    start, end    of the bucket
    """

    row: Rows
    position: Rows
    bucket_start: Rows
    bucket_end: Rows


def join_sketch_keys(block: Rows, columns: Columns, key_entries: Entries) -> tuple[Pairs, int]:
    """Candidates whose smaller row is in ``block`` (at most 2**20); and pairs left out of large buckets beginning there."""
    places = _locate_entries(block, columns, key_entries)
    sizes = places.bucket_end - places.bucket_start
    large = sizes > MAX_BUCKET_ROWS
    counts = np.where(large, 0, places.bucket_end - places.position - 1)
    weights = _WEIGHTS[np.searchsorted(_WEIGHT_MAX_ROWS, np.minimum(sizes, MAX_BUCKET_ROWS))]
    ends = np.searchsorted(places.row, np.arange(len(block) + 1))
    short = np.asarray(columns.sampled) < MIN_SHARED_WEIGHT
    found = []
    for some in slices_by_count(np.bincount(places.row, counts, len(block)).astype(np.int64)):
        mine = slice(int(ends[some.start]), int(ends[some.stop]))
        heads = places.row[mine].astype(np.uint64) << _BLOCK_ROW_SHIFT | weights[mine]
        partners = key_entries[following_positions(places.position[mine], counts[mine])] & _ROW_MASK
        shared = np.repeat(heads, counts[mine]) | partners << _PARTNER_SHIFT
        found.append(_pairs_above_weight(shared, block, columns.sampled, short))
    skipped = 0
    for place in np.flatnonzero(large & (places.position == places.bucket_start)).tolist():
        members = (key_entries[places.bucket_start[place] : places.bucket_end[place]] & _ROW_MASK).astype(
            np.int64
        )
        pairs, more = _join_large_bucket(members, columns)
        found.append(pairs)
        skipped += more
    return merge_pairs(found), skipped


def _locate_entries(block: Rows, columns: Columns, key_entries: Entries) -> _BlockEntries:
    bands = columns.bands[block]
    row, column = np.nonzero(first_occurrences(bands))
    wanted = pack_pairs(bands[row, column], block[row])
    order = np.argsort(wanted)
    wanted = wanted[order]  # ascending, they are found one after another
    places = np.empty((3, len(wanted)), np.int64)
    places[0, order] = np.searchsorted(key_entries, wanted)
    places[1, order] = np.searchsorted(key_entries, wanted & KEY_MASK)
    places[2, order] = np.searchsorted(key_entries, wanted | _ROW_MASK, side="right")
    return _BlockEntries(row, *places)


def _pairs_above_weight(
    shared: npt.NDArray[np.uint64],
    block: Rows,
    sampled: npt.NDArray[np.uint16],
    has_short_sample: npt.NDArray[np.bool_],
) -> Pairs:
    """Pairs that come to ENOUGH. ``shared``: one number per shared hash: row of the block, partner, what it counts."""
    shared.sort()
    pairs = shared >> _PARTNER_SHIFT
    starts = np.flatnonzero(np.diff(pairs, prepend=~pairs[:1]))
    if not len(starts):
        return pairs
    pairs = pairs[starts]
    enough = np.add.reduceat(shared & _WEIGHT_MASK, starts) >= MIN_SHARED_WEIGHT
    a, b = block[(pairs >> np.uint64(32)).astype(np.int64)], (pairs & _ROW_MASK).astype(np.int64)
    if has_short_sample.any():
        common = np.diff(starts, append=len(shared))
        few = np.flatnonzero(~enough & (has_short_sample[a] | has_short_sample[b]))
        enough[few] = common[few] >= np.minimum(sampled[a[few]], sampled[b[few]])
    return pack_pairs(a[enough], b[enough])


def _join_large_bucket(members: Rows, columns: Columns) -> tuple[Pairs, int]:
    """Neighbours in the order of their smallest hashes that have many in common."""
    bands = columns.bands[members]
    first, second = window_pairs(order_by_smallest_keys(np.arange(len(members)), bands))
    near = have_common_keys(bands[first], bands[second], LARGE_BUCKET_MIN_COMMON_KEYS)
    pairs = pack_pairs(*order_pairs(members[first[near]], members[second[near]]))
    return pairs, uncompared_pairs(len(members), len(first))


def have_common_keys(
    a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32], min_common: int
) -> npt.NDArray[np.bool_]:
    """Do two articles have ``least`` of their bands in common, or all of a shorter sample? (n, BANDS) each."""
    both = np.sort(np.concatenate([a, b], axis=-1), axis=-1)
    repeats_a, repeats_b = _count_repeats(a), _count_repeats(b)  # a short sample repeats its last hash
    common = _count_repeats(both) - repeats_a - repeats_b
    found: npt.NDArray[np.bool_] = common >= np.minimum(
        min_common, a.shape[-1] - np.maximum(repeats_a, repeats_b)
    )
    return found


def _count_repeats(hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """How many of the ascending hashes in the last axis equal the one before."""
    found: npt.NDArray[np.int64] = (hashes[..., 1:] == hashes[..., :-1]).sum(axis=-1)
    return found
