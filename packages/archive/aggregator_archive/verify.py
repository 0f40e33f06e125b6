"""Overlap of candidates: ``shingles.estimate_overlap``, without openings, for millions of pairs.

The estimates are those of one pair at a time (a test compares them), computed with numpy: the samples of a
batch of pairs become keys (position in the batch, hash), ascending, and those of one article are searched in
those of the other, like there without the lowest bits. Few pairs share enough wording to be copies;
``pair_rule.py`` decides those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import IGNORED_LOW_BITS
from aggregator_archive.arrays import Flags, Floats, Hashes, Keys, Rows, batches
from aggregator_archive.columns import Columns
from aggregator_archive.pairs import Pairs, pack_pairs, unpack_pairs

PAIRS_PER_BATCH = 4_096
_MAX_HASH = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, eq=False)
class PairOverlaps:
    """Estimated overlaps of n pairs, (n,) each; the fields are those of ``shingles.OverlapEstimate``."""

    containment: Floats
    resemblance: Floats
    shared: Floats
    size_ratio: Floats
    error: Floats

    def select(self, indexes: Rows | Flags) -> PairOverlaps:
        """The overlaps of some pairs, by index or by mask."""
        return PairOverlaps(*(getattr(self, name)[indexes] for name in OVERLAP_FIELDS))

    def join(self, other: PairOverlaps) -> PairOverlaps:
        """These overlaps, then those of ``other``."""
        return PairOverlaps(*(np.r_[getattr(self, name), getattr(other, name)] for name in OVERLAP_FIELDS))


OVERLAP_FIELDS = PairOverlaps.__slots__


def estimate_overlaps(columns: Columns, pairs: Pairs) -> PairOverlaps:
    """The overlap of each pair, estimated from the samples."""
    parts = [
        _estimate_batch(columns, *unpack_pairs(pairs[batch]))
        for batch in batches(len(pairs), PAIRS_PER_BATCH)
    ]
    return PairOverlaps(*np.concatenate([np.empty((5, 0)), *parts], axis=1))


def _estimate_batch(columns: Columns, a: Rows, b: Rows) -> Floats:
    """(5, n): containment, resemblance, shared, size ratio, error."""
    count = len(a)
    keys_a, keys_b = _sample_keys(columns, a), _sample_keys(columns, b)
    common = _count_common(keys_a, keys_b, count)
    limit = np.minimum(_completeness_limits(columns, a), _completeness_limits(columns, b))
    in_a, in_b = _count_up_to(keys_a, limit, count), _count_up_to(keys_b, limit, count)
    size_a, size_b = columns.size[a].astype(float), columns.size[b].astype(float)
    smaller, larger = np.minimum(size_a, size_b), np.maximum(size_a, size_b)
    base = np.where(size_a <= size_b, in_a, in_b)
    overlapping = common > 0
    containment = np.zeros(count)
    np.divide(common, base, out=containment, where=overlapping)
    np.minimum(containment, 1.0, out=containment)
    resemblance = np.zeros(count)
    np.divide(common, in_a + in_b - common, out=resemblance, where=overlapping)
    ratio = np.zeros(count)
    np.divide(smaller, larger, out=ratio, where=overlapping)
    counted = np.maximum(base, 1.0)
    z2 = np.where(overlapping, np.maximum(0.0, 1.0 - base / np.maximum(smaller, 1.0)), 0.0)
    spread = np.sqrt(z2 * (containment * (1.0 - containment) + z2 / (4 * counted)) / counted)
    error = containment - (containment + z2 / (2 * counted) - spread) / (1 + z2 / counted)
    return np.stack([containment, resemblance, containment * smaller, ratio, error])


def _sample_keys(columns: Columns, rows: Rows) -> Keys:
    return position_keys(columns.sample, columns.sample_end[rows], columns.sample_size[rows])


def position_keys(values: Hashes, ends: Rows, sizes: npt.NDArray[np.unsignedinteger]) -> Keys:
    """Keys (position of the pair, value) of n lists in ``values``; ascending if each list is.

    ``ends``, ``sizes``: (n,) end and length of each list.
    """
    counts = sizes.astype(np.int64)
    filled = np.cumsum(counts)
    position = np.repeat(np.arange(len(counts)), counts)
    at = np.arange(filled[-1] if len(filled) else 0) + np.repeat(ends - filled, counts)
    return pack_pairs(position, values[at])


def _count_common(a: Keys, b: Keys, count: int) -> Floats:
    """(count,) number of keys of ``b`` that are in ``a``, without ``IGNORED_LOW_BITS``."""
    if not len(a):
        return np.zeros(count)
    own, other = a >> np.uint64(IGNORED_LOW_BITS), b >> np.uint64(IGNORED_LOW_BITS)
    nearest = np.minimum(own.searchsorted(other), len(own) - 1)
    positions = (b >> np.uint64(32))[own[nearest] == other]
    return np.bincount(positions.astype(np.int64), minlength=count).astype(float)


def _completeness_limits(columns: Columns, rows: Rows) -> Rows:
    """The largest hash up to which each sample is complete; equal ones without low bits count."""
    sizes = columns.sample_size[rows].astype(np.int64)
    last = columns.sample[columns.sample_end[rows] - 1].astype(np.int64)
    return np.where(sizes < columns.size[rows], last | (1 << IGNORED_LOW_BITS) - 1, _MAX_HASH)


def _count_up_to(keys: Keys, limit: Rows, count: int) -> Floats:
    """Number of hashes of each row of the batch up to its limit, inclusive."""
    row = np.arange(count)
    starts = np.searchsorted(keys, pack_pairs(row, np.zeros(count, np.int64)))
    ends = np.searchsorted(keys, pack_pairs(row, limit), side="right")
    return (ends - starts).astype(float)
