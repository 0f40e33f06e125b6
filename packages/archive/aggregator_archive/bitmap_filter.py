"""Bitmap filter: an upper bound for the shared hashes of two samples, from bitmaps of 2,048 bits.

The bits that two bitmaps share estimate how many hashes the samples share (linear counting, Whang et al.
1990): candidates that share one phrase are rejected without merging their samples.
"""

from __future__ import annotations

import numpy as np

from aggregator_archive.arrays import Flags, Floats, Hashes, Keys, Rows, batches

BITMAP_BITS = 2_048
TOLERANCE_STANDARD_ERRORS = 3  # standard errors below the expected number of common bits
_ROWS_PER_BATCH = 2_048
_HASH_MULTIPLIER = np.uint32(0x85EBCA6B)
_HASH_SHIFT = np.uint32(32 - (BITMAP_BITS - 1).bit_length())


def sample_bitmaps(sample: Hashes, sizes: Rows) -> Keys:
    """(n, BITMAP_BITS / 64) bitmaps of n samples, concatenated in ``sample``; ``sizes``: (n,) lengths."""
    bitmaps = np.empty((len(sizes), BITMAP_BITS // 64), np.uint64)
    ends = np.cumsum(sizes)
    for batch in batches(len(sizes), _ROWS_PER_BATCH):
        lengths = sizes[batch]
        start = ends[batch.start] - lengths[0]
        hashes = sample[start : start + lengths.sum()]
        bits = np.zeros((len(lengths), BITMAP_BITS), np.bool_)
        first_bits = np.repeat(np.arange(len(lengths)) * BITMAP_BITS, lengths)
        bits.ravel()[first_bits + (hashes * _HASH_MULTIPLIER >> _HASH_SHIFT)] = True
        bitmaps[batch] = np.packbits(bits, axis=1).view(np.uint64)
    return bitmaps


def may_share(a: Keys, b: Keys, size_a: Rows, size_b: Rows, min_common: Floats) -> Flags:
    """Which pairs of samples may share ``min_common`` hashes; false negatives are rare (3 standard errors).

    ``a``, ``b``: (n, BITMAP_BITS / 64) bitmaps; ``size_a``, ``size_b``: (n,) sizes of the samples.
    """
    common = np.bitwise_count(a & b).sum(axis=1, dtype=np.int64)
    # Probability that a bit is set in each bitmap, and in both if the samples share ``min_common`` hashes.
    unset = 1.0 - 1.0 / BITMAP_BITS
    set_a, set_b = 1.0 - unset**size_a, 1.0 - unset**size_b
    set_in_both = set_a + set_b - 1.0 + unset ** (size_a + size_b - min_common)
    variance = BITMAP_BITS * set_a * (1.0 - set_a) * set_b * (1.0 - set_b)
    tolerance = TOLERANCE_STANDARD_ERRORS * np.sqrt(variance) + 1.0  # 1: two of few hashes may set one bit
    possible: Flags = common >= BITMAP_BITS * set_in_both - tolerance
    return possible
