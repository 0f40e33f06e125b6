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
    KEYS,
    Entries,
    by_smallest,
    followers,
    left_out,
    neighbours,
    slices,
)
from aggregator.offline.archive.columns import Columns
from aggregator.offline.archive.pairs import Pairs, Rows, merged, ordered, packed
from aggregator.offline.archive.sketch_keys import first_of_each

COUNTING = ((16, 4), (64, 3), (256, 1))  # (rows that have a hash, what it counts)
ENOUGH = 4
BUCKET_MAX = COUNTING[-1][0]
LARGE_AGREEING = 6  # bands, between neighbours in a larger bucket
_SIZES = np.array([rows for rows, _ in COUNTING])
_WEIGHTS = np.array([weight for _, weight in COUNTING], np.uint64)
_ROW = np.uint64(0xFFFFFFFF)
# Of a number that stands for a shared hash: where the block's row begins, the partner's row, and what the hash counts.
_BLOCK_ROW, _PARTNER, _COUNT = np.uint64(36), np.uint64(4), np.uint64(15)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where the bands of a block of rows stand in the list, row after row.

    row    position of the row in the block
    at     position of its entry in the list
    start, end    of the bucket
    """

    row: Rows
    at: Rows
    start: Rows
    end: Rows


def join_bands(block: Rows, columns: Columns, listed: Entries) -> tuple[Pairs, int]:
    """Candidates whose smaller row is in ``block`` (at most 2**20); and pairs left out of large buckets beginning there."""
    places = _places(block, columns, listed)
    sizes = places.end - places.start
    large = sizes > BUCKET_MAX
    counts = np.where(large, 0, places.end - places.at - 1)
    weights = _WEIGHTS[np.searchsorted(_SIZES, np.minimum(sizes, BUCKET_MAX))]
    ends = np.searchsorted(places.row, np.arange(len(block) + 1))
    short = np.asarray(columns.sampled) < ENOUGH
    found = []
    for some in slices(np.bincount(places.row, counts, len(block)).astype(np.int64)):
        mine = slice(int(ends[some.start]), int(ends[some.stop]))
        heads = places.row[mine].astype(np.uint64) << _BLOCK_ROW | weights[mine]
        partners = listed[followers(places.at[mine], counts[mine])] & _ROW
        shared = np.repeat(heads, counts[mine]) | partners << _PARTNER
        found.append(_enough(shared, block, columns.sampled, short))
    skipped = 0
    for place in np.flatnonzero(large & (places.at == places.start)).tolist():
        members = (listed[places.start[place] : places.end[place]] & _ROW).astype(np.int64)
        pairs, more = _large(members, columns)
        found.append(pairs)
        skipped += more
    return merged(found), skipped


def _places(block: Rows, columns: Columns, listed: Entries) -> _Places:
    bands = columns.bands[block]
    row, column = np.nonzero(first_of_each(bands))
    wanted = packed(bands[row, column], block[row])
    order = np.argsort(wanted)
    wanted = wanted[order]  # ascending, they are found one after another
    places = np.empty((3, len(wanted)), np.int64)
    places[0, order] = np.searchsorted(listed, wanted)
    places[1, order] = np.searchsorted(listed, wanted & KEYS)
    places[2, order] = np.searchsorted(listed, wanted | _ROW, side="right")
    return _Places(row, *places)


def _enough(
    shared: npt.NDArray[np.uint64], block: Rows, sampled: npt.NDArray[np.uint16], short: npt.NDArray[np.bool_]
) -> Pairs:
    """Pairs that come to ENOUGH. ``shared``: one number per shared hash: row of the block, partner, what it counts."""
    shared.sort()
    pairs = shared >> _PARTNER
    starts = np.flatnonzero(np.diff(pairs, prepend=~pairs[:1]))
    if not len(starts):
        return pairs
    pairs = pairs[starts]
    enough = np.add.reduceat(shared & _COUNT, starts) >= ENOUGH
    a, b = block[(pairs >> np.uint64(32)).astype(np.int64)], (pairs & _ROW).astype(np.int64)
    if short.any():
        common = np.diff(starts, append=len(shared))
        few = np.flatnonzero(~enough & (short[a] | short[b]))
        enough[few] = common[few] >= np.minimum(sampled[a[few]], sampled[b[few]])
    return packed(a[enough], b[enough])


def _large(members: Rows, columns: Columns) -> tuple[Pairs, int]:
    """Neighbours in the order of their smallest hashes that have many in common."""
    bands = columns.bands[members]
    first, second = neighbours(by_smallest(np.arange(len(members)), bands))
    near = agreeing(bands[first], bands[second], LARGE_AGREEING)
    pairs = packed(*ordered(members[first[near]], members[second[near]]))
    return pairs, left_out(len(members), len(first))


def agreeing(a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32], least: int) -> npt.NDArray[np.bool_]:
    """Do two articles have ``least`` of their bands in common, or all of a shorter sample? (n, BANDS) each."""
    both = np.sort(np.concatenate([a, b], axis=-1), axis=-1)
    repeats_a, repeats_b = _repeats(a), _repeats(b)  # a short sample repeats its last hash
    common = _repeats(both) - repeats_a - repeats_b
    found: npt.NDArray[np.bool_] = common >= np.minimum(least, a.shape[-1] - np.maximum(repeats_a, repeats_b))
    return found


def _repeats(hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """How many of the ascending hashes in the last axis equal the one before."""
    found: npt.NDArray[np.int64] = (hashes[..., 1:] == hashes[..., :-1]).sum(axis=-1)
    return found
