"""Which articles may be copies of one another? Those that share a bucket.

Two joins over sorted keys, the offline counterpart of the service's look-ups. **Bits**: fingerprints within
``radius`` <= 3 bits agree in at least one of four 16-bit blocks (``blocks.py``), so each bucket (block, value)
is compared with itself. **Bands**: articles that share one of their smallest shingle hashes (``overlap.py``).

A partition is one join over a range of keys. Partitions need nothing of one another, so ``join(partition)`` can
run in any order, in any process, on any machine that reads the columns. A pair is one uint64, the smaller row in
the upper half; it may be found by several partitions.

Some shingles are in every other article ("one of the"): the more rows a bucket has, the more of their smallest
hashes two of them must have in common to be worth a closer look (``AGREEING``). A bucket of more than ``BUCKET_MAX``
rows (boilerplate, a template) is not compared in full: that would be quadratic. Its rows are put in order of their
samples, where near-copies stand close together, and each is paired with the next ``WINDOW``. How many pairs were left
out is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aggregator.corpus.checkpoint import save
from aggregator.corpus.columns import Columns, mapped

# In a bucket of up to so many rows a pair must agree in so many of its smallest hashes.
AGREEING = ((16, 1), (64, 2), (256, 4), (2**31, 6))
BUCKET_MAX = {True: 4_096, False: 256}  # of blocks, where a comparison is one machine word; of bands
WINDOW = 8
BLOCKS, BLOCK_BITS = 4, 16
_SLICE_ROWS = 1 << 20
_PAIRS_AT_ONCE = 1 << 22

Pairs = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Partition:
    """Keys ``low`` <= key < ``high``: of 16-bit values of one block, or (``block`` None) of 32-bit hashes."""

    low: int
    high: int
    block: int | None = None

    @property
    def name(self) -> str:
        kind = "bands" if self.block is None else f"block{self.block}"
        return f"{kind}-{self.low:08x}"


def partitions(rows: int, *, bits: bool, bands: bool) -> list[Partition]:
    """Ranges that leave about a million keys to each."""
    found = []
    if bits:
        parts = max(1, rows // _SLICE_ROWS)
        found += [
            Partition(lo, hi, block) for block in range(BLOCKS) for lo, hi in _ranges(1 << BLOCK_BITS, parts)
        ]
    if bands:
        # Smallest hashes crowd near zero: of 16 of about 400 most lie in the lowest twentieth.
        parts = max(1, 16 * rows // _SLICE_ROWS)
        edges = [0, *(round((1 << 32) * (k / parts) ** 4) for k in range(1, parts)), 1 << 32]
        found += [Partition(lo, hi) for lo, hi in pairwise(edges) if lo < hi]
    return found


def _ranges(end: int, parts: int) -> list[tuple[int, int]]:
    edges = [end * k // parts for k in range(parts + 1)]
    return list(pairwise(edges))


def join_files(partition: Partition, directory: str, radius: int, out: str) -> tuple[int, int]:
    """Candidates of a partition of the columns in ``directory`` into ``out``; (pairs, pairs left out)."""
    file = Path(out)
    if not file.exists():
        rows = np.load(Path(directory) / "distinct.npy", mmap_mode="r")
        pairs, left_out = join(partition, mapped(Path(directory)), rows, radius)
        save(file, pairs=pairs, left_out=np.array(left_out))
    with np.load(file) as found:
        return len(found["pairs"]), int(found["left_out"])


def join(partition: Partition, columns: Columns, rows: Rows, radius: int) -> tuple[Pairs, int]:
    """Distinct candidate pairs among ``rows`` in one partition, and how many were left out of large buckets."""
    keys, at = _keys(partition, columns, rows)
    order = np.lexsort((at, keys))
    keys, at = keys[order], at[order]
    starts = (
        np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, int)
    )
    sizes = np.diff(np.append(starts, len(keys)))
    found: list[Pairs] = []
    largest = BUCKET_MAX[partition.block is not None]
    for size in np.unique(sizes[(sizes > 1) & (sizes <= largest)]).tolist():
        found += _within_buckets(at, starts[sizes == size], size, partition, columns, radius)
    left_out = 0
    for start, size in zip(starts[sizes > largest].tolist(), sizes[sizes > largest].tolist(), strict=True):
        pairs, skipped = _large_bucket(at[start : start + size], partition, columns, radius)
        found.append(pairs)
        left_out += skipped
    return (np.unique(np.concatenate(found)) if found else np.empty(0, np.uint64)), left_out


def _keys(partition: Partition, columns: Columns, rows: Rows) -> tuple[npt.NDArray[np.uint64], Rows]:
    """The keys of this partition and the rows that have them, a row once per key."""
    keys, at = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for start in range(0, len(rows), _SLICE_ROWS):
        some = np.asarray(rows[start : start + _SLICE_ROWS])
        if partition.block is None:
            bands = columns.bands[some]
            first = np.ones(bands.shape, bool)
            first[:, 1:] = bands[:, 1:] != bands[:, :-1]  # a short sample repeats its last hash
            row, column = np.nonzero(first & (bands >= partition.low) & (bands < partition.high))
            keys.append(bands[row, column].astype(np.uint64))
            at.append(some[row])
            continue
        shift = np.uint64((BLOCKS - 1 - partition.block) * BLOCK_BITS)
        values = columns.fingerprint[some] >> shift & np.uint64(0xFFFF)
        chosen = (values >= partition.low) & (values < partition.high)
        # Only fingerprints of one space are comparable.
        keys.append(values[chosen] | columns.space[some][chosen].astype(np.uint64) << np.uint64(BLOCK_BITS))
        at.append(some[chosen])
    return np.concatenate(keys), np.concatenate(at)


def _within_buckets(
    at: Rows, starts: Rows, size: int, partition: Partition, columns: Columns, radius: int
) -> list[Pairs]:
    """All pairs within buckets of one size, many buckets at a time."""
    first, second = np.triu_indices(size, 1)
    step = max(1, _PAIRS_AT_ONCE // len(first))
    found = []
    for part in range(0, len(starts), step):
        members = at[starts[part : part + step, None] + np.arange(size)]
        near = _near(members, first, second, partition, columns, radius)
        if near is None:
            found.append(_paired(members[:, first].ravel(), members[:, second].ravel()))
        else:
            bucket, pair = np.nonzero(near)
            found.append(_paired(members[bucket, first[pair]], members[bucket, second[pair]]))
    return found


def _near(
    members: Rows, first: Rows, second: Rows, partition: Partition, columns: Columns, radius: int
) -> npt.NDArray[np.bool_] | None:
    """(buckets, pairs): which pairs of members are candidates; None: all."""
    if partition.block is not None:
        fingerprints = columns.fingerprint[members]
        near: npt.NDArray[np.bool_] = (
            np.bitwise_count(fingerprints[:, first] ^ fingerprints[:, second]) <= radius
        )
        return near
    least = next(least for rows, least in AGREEING if members.shape[1] <= rows)
    if least == 1:
        return None
    bands = columns.bands[members]
    return _agreeing(bands[:, first], bands[:, second], least)


def _agreeing(a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32], least: int) -> npt.NDArray[np.bool_]:
    """Do two articles have ``least`` of their smallest hashes in common, or all of a shorter sample? (..., BANDS)."""
    both = np.sort(np.concatenate([a, b], axis=-1), axis=-1)
    repeats_a, repeats_b = _repeats(a), _repeats(b)  # a short sample repeats its last hash
    common = _repeats(both) - repeats_a - repeats_b
    found: npt.NDArray[np.bool_] = common >= np.minimum(least, a.shape[-1] - np.maximum(repeats_a, repeats_b))
    return found


def _repeats(hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """How many of the ascending hashes in the last axis equal the one before."""
    found: npt.NDArray[np.int64] = (hashes[..., 1:] == hashes[..., :-1]).sum(axis=-1)
    return found


def _large_bucket(members: Rows, partition: Partition, columns: Columns, radius: int) -> tuple[Pairs, int]:
    size = len(members)
    bands = columns.bands[members]
    by_sample = np.lexsort((members, *(bands[:, k] for k in range(3, -1, -1))))
    orders = [by_sample]
    if partition.block is not None:
        orders.append(np.lexsort((members, columns.fingerprint[members])))
    found, compared = [], 0
    for ordered in (members[order] for order in orders):
        first = np.concatenate([np.arange(size - step) for step in range(1, WINDOW + 1)])
        second = np.concatenate([np.arange(step, size) for step in range(1, WINDOW + 1)])
        near = _near(ordered[None], first, second, partition, columns, radius)
        a, b = (
            (ordered[first], ordered[second])
            if near is None
            else (ordered[first[near[0]]], ordered[second[near[0]]])
        )
        found.append(_paired(a, b))
        compared += len(first)
    return np.unique(np.concatenate(found)), max(0, size * (size - 1) // 2 - compared)


def _paired(a: Rows, b: Rows) -> Pairs:
    low, high = np.minimum(a, b), np.maximum(a, b)
    return low.astype(np.uint64) << np.uint64(32) | high.astype(np.uint64)


def rows_of(pairs: Pairs) -> tuple[Rows, Rows]:
    """The two rows of each pair."""
    return (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)


def merged(parts: Sequence[Pairs]) -> Pairs:
    """Each pair once, ascending."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))
