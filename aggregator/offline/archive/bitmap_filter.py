"""May two articles share much? Seen from two maps of bits, before any sample is looked at.

Each hash of a sample marks one of MARKS bits. Of two maps the marks in common tell how many hashes two samples share
(linear counting, Whang et al. 1990): a hundred numbers of two samples need not be fetched and merged to see that two
articles have one phrase in common and nothing else, as nearly all candidates have.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BITMAP_BITS = 2_048
TOLERANCE_STANDARD_ERRORS = 3  # standard errors below what a copy's marks come to
_ROWS_PER_SLICE = 2_048
_HASH_MULTIPLIER = np.uint32(0x85EBCA6B)
_HASH_SHIFT = np.uint32(32 - (BITMAP_BITS - 1).bit_length())

Hashes = npt.NDArray[np.uint32]
Bitmaps = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def sample_bitmaps(sample: Hashes, sizes: Counts) -> Bitmaps:
    """(n, MARKS / 64) maps of n samples; ``sample``: all of them one after another, (n,) ``sizes``: how long each is."""
    found = np.empty((len(sizes), BITMAP_BITS // 64), np.uint64)
    ends = np.cumsum(sizes)
    for at in range(0, len(sizes), _ROWS_PER_SLICE):
        some = sizes[at : at + _ROWS_PER_SLICE]
        hashes = sample[ends[at] - sizes[at] : ends[at] - sizes[at] + some.sum()]
        bits = np.zeros((len(some), BITMAP_BITS), np.bool_)
        bits.ravel()[
            np.repeat(np.arange(len(some)) * BITMAP_BITS, some) + (hashes * _HASH_MULTIPLIER >> _HASH_SHIFT)
        ] = True
        found[at : at + _ROWS_PER_SLICE] = np.packbits(bits, axis=1).view(np.uint64)
    return found


def may_share(
    a: Bitmaps, b: Bitmaps, size_a: Counts, size_b: Counts, min_common: Floats
) -> npt.NDArray[np.bool_]:
    """Which pairs of samples may share ``least`` hashes; (n, MARKS / 64) maps, (n,) sizes of the samples."""
    common = np.bitwise_count(a & b).sum(axis=1, dtype=np.int64)
    # Chance that a bit is marked by each, and by both when so many hashes are the same.
    bare = 1.0 - 1.0 / BITMAP_BITS
    marked_a, marked_b = 1.0 - bare**size_a, 1.0 - bare**size_b
    both = marked_a + marked_b - 1.0 + bare ** (size_a + size_b - min_common)
    by_chance = (
        BITMAP_BITS * marked_a * (1.0 - marked_a) * marked_b * (1.0 - marked_b)
    )  # variance of marks that meet
    lacking = (
        TOLERANCE_STANDARD_ERRORS * np.sqrt(by_chance) + 1.0
    )  # even of a few hashes two may have one mark
    found: npt.NDArray[np.bool_] = common >= BITMAP_BITS * both - lacking
    return found
