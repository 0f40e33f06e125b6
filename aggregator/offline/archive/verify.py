"""Which candidates do share their wording? ``overlap.compare`` and ``verdict.is_copy`` for millions of pairs.

The same estimates from the same samples as one pair at a time (a test holds them equal), over numpy arrays: the
samples of a batch of pairs are laid out as keys (position in the batch, hash), sorted, and equal neighbours
counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aggregator.dedup.templates import SAME_LENGTH_MIN_SHARED_FACTOR, SAME_LENGTH_RATIO, TRUNCATED_RATIO
from aggregator.dedup.verdict import CONTAINMENT_STANDARD_ERRORS, TRUNCATED_MIN_SHARED_FACTOR, Policy
from aggregator.offline.archive.columns import Columns
from aggregator.offline.archive.pairs import Pairs, Rows, pack_pairs, unpack_pairs

PAIRS_PER_BATCH = 4_096
_MAX_HASH = 0xFFFFFFFF

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PairOverlaps:
    """Per pair, as in ``overlap.Overlap``: (n,) float64 each."""

    containment: Floats
    resemblance: Floats
    shared: Floats
    size_ratio: Floats
    error: Floats

    def select(self, indexes: Rows) -> PairOverlaps:
        """Those of some pairs."""
        return PairOverlaps(*(getattr(self, name)[indexes] for name in self.__slots__))


def estimate_overlaps(columns: Columns, pairs: Pairs) -> PairOverlaps:
    """The overlap of each pair, estimated from the samples."""
    parts = [
        _estimate_batch(columns, *unpack_pairs(pairs[at : at + PAIRS_PER_BATCH]))
        for at in range(0, len(pairs), PAIRS_PER_BATCH)
    ]
    return PairOverlaps(*np.concatenate([np.empty((5, 0)), *parts], axis=1))


def are_copies(pair_overlaps: PairOverlaps, policy: Policy) -> npt.NDArray[np.bool_]:
    """``verdict.is_copy`` for every pair, terms left aside: an archive's columns do not have them.

    So two different articles in one site's long frame pass here when a fifth of the shorter is frame, and short
    frames filled in with other names when they agree in three quarters; the service asks for similar terms too.
    Nearness of fingerprints is no stand-in: that of a copy that was cut or padded may lie anywhere. What terms would
    change was measured (docs/MEASURED.md, "Whole archives").
    """
    factor = np.where(pair_overlaps.size_ratio < TRUNCATED_RATIO, TRUNCATED_MIN_SHARED_FACTOR, 1.0)
    factor = np.where(pair_overlaps.size_ratio >= SAME_LENGTH_RATIO, SAME_LENGTH_MIN_SHARED_FACTOR, factor)
    sure = pair_overlaps.containment - CONTAINMENT_STANDARD_ERRORS * pair_overlaps.error
    some = (sure >= policy.min_containment) & (pair_overlaps.shared >= policy.min_shared_shingles * factor)
    return some | (pair_overlaps.containment >= policy.strong_containment)


def _estimate_batch(columns: Columns, a: Rows, b: Rows) -> Floats:
    """(5, n): containment, resemblance, shared, size ratio, error."""
    count = len(a)
    keys_a, keys_b = _sample_keys(columns, a), _sample_keys(columns, b)
    common = count_common_keys(keys_a, keys_b, count)
    limit = np.minimum(_completeness_limits(columns, a), _completeness_limits(columns, b))
    in_a, in_b = _count_up_to(keys_a, limit, count), _count_up_to(keys_b, limit, count)
    size_a, size_b = columns.size[a].astype(float), columns.size[b].astype(float)
    smaller, larger = np.minimum(size_a, size_b), np.maximum(size_a, size_b)
    base = np.where(size_a <= size_b, in_a, in_b)
    some = common > 0
    containment = np.zeros(count)
    np.divide(common, base, out=containment, where=some)
    np.minimum(containment, 1.0, out=containment)
    resemblance = np.zeros(count)
    np.divide(common, in_a + in_b - common, out=resemblance, where=some)
    ratio = np.zeros(count)
    np.divide(smaller, larger, out=ratio, where=some)
    error = np.zeros(count)
    np.divide(containment * (1.0 - containment), base, out=error, where=some)
    np.multiply(
        error, np.maximum(0.0, 1.0 - np.divide(base, smaller, where=some, out=np.ones(count))), out=error
    )
    return np.stack([containment, resemblance, containment * smaller, ratio, np.sqrt(error)])


def _sample_keys(columns: Columns, rows: Rows) -> npt.NDArray[np.uint64]:
    return position_keys(columns.sample, columns.sample_end[rows], columns.sampled[rows])


def position_keys(
    values: npt.NDArray[np.uint32], ends: npt.NDArray[np.int64], sizes: npt.NDArray[np.unsignedinteger]
) -> npt.NDArray[np.uint64]:
    """Position of the pair in the upper half, hash in the lower; ascending where each row's list is."""
    counts = sizes.astype(np.int64)
    filled = np.cumsum(counts)
    position = np.repeat(np.arange(len(counts)), counts)
    at = np.arange(filled[-1] if len(filled) else 0) + np.repeat(ends - filled, counts)
    return pack_pairs(position, values[at])


def count_common_keys(a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64], count: int) -> Floats:
    """(count,) how many keys of each pair are in both lists of keys."""
    both = np.sort(np.concatenate([a, b]))
    equal = both[1:][both[1:] == both[:-1]] >> np.uint64(32)
    return np.bincount(equal.astype(np.int64), minlength=count).astype(float)


def _completeness_limits(columns: Columns, rows: Rows) -> npt.NDArray[np.int64]:
    """The largest hash up to which a sample is complete."""
    sizes = columns.sampled[rows].astype(np.int64)
    last = columns.sample[columns.sample_end[rows] - 1].astype(np.int64)
    return np.where(sizes < columns.size[rows], last, _MAX_HASH)


def _count_up_to(keys: npt.NDArray[np.uint64], limit: npt.NDArray[np.int64], count: int) -> Floats:
    """How many hashes of each row of the batch are at most its limit."""
    row = np.arange(count)
    starts = np.searchsorted(keys, pack_pairs(row, np.zeros(count, np.int64)))
    ends = np.searchsorted(keys, pack_pairs(row, limit), side="right")
    return (ends - starts).astype(float)
