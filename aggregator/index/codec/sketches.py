"""How the sample of a sketch is packed: some 12 bits a hash instead of 32.

    bytes 0..1    how many hashes, little-endian
    byte 2        k, the width of a gap's lower part
    then bits     the lowest 12 of each of the first eight hashes: those name the article's bands, whole;
                  the lower k bits of each gap; of each gap what is above them, as so many zeros and a one

Hashes are sorted and chance, so the gaps between them (in steps of 2**12) are geometrically distributed, for which
this code is nearly the shortest there is (Golomb 1966, Rice 1979). What ``overlap.compare`` looks at of a hash,
its upper 20 bits, is kept; the rest of those beyond the bands becomes zero.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import IGNORED_LOW_BITS, MAX_SKETCH_KEYS

BitArray = npt.NDArray[np.uint8]

_HEADER = struct.Struct("<HB")
_MAX_GAP_BITS = 32 - IGNORED_LOW_BITS


def encode_sketch_sample(sample: npt.NDArray[np.uint32]) -> bytes:
    """A sorted sample, (n,) uint32, written down."""
    if not len(sample):
        return b""
    gaps = (sample >> IGNORED_LOW_BITS).astype(np.int64)
    k = max(0, (int(gaps[-1]) // len(gaps)).bit_length() - 1)
    gaps[1:] -= gaps[:-1].copy()
    ends = (gaps >> k).cumsum() + np.arange(len(gaps))
    ones = np.zeros(int(ends[-1]) + 1, np.uint8)
    ones[ends] = 1
    bits = np.concatenate([_low_bits(sample[:MAX_SKETCH_KEYS], IGNORED_LOW_BITS), _low_bits(gaps, k), ones])
    return _HEADER.pack(len(gaps), k) + np.packbits(bits).tobytes()


def decode_sketch_sample(data: bytes) -> npt.NDArray[np.uint32]:
    """The sample, (n,) uint32, whose hashes after the first eight have lost their lowest 12 bits.

    Raises ValueError when it is not whole.
    """
    if not data:
        return np.empty(0, np.uint32)
    try:
        count, k = _HEADER.unpack_from(data)
    except struct.error as error:
        raise ValueError(str(error)) from error
    bits = np.unpackbits(np.frombuffer(data, np.uint8, offset=_HEADER.size))
    whole = min(count, MAX_SKETCH_KEYS)
    fine, lower = whole * IGNORED_LOW_BITS, count * k
    (ends,) = bits[fine + lower :].nonzero()
    if not 0 < len(ends) == count or k > _MAX_GAP_BITS:
        raise ValueError("a sample ends within a number")
    # The i-th one stands behind what all gaps up to there have above their lower parts, and i ones.
    above = (ends - np.arange(count)) << k
    steps = above + _numbers_from_bits(bits[fine : fine + lower], count, k).cumsum(dtype=np.int64)
    if steps[-1] >> _MAX_GAP_BITS:
        raise ValueError("a sample has a hash of more than 32 bits")
    sample: npt.NDArray[np.uint32] = (steps << IGNORED_LOW_BITS).astype(np.uint32)
    sample[:whole] |= _numbers_from_bits(bits[:fine], whole, IGNORED_LOW_BITS)
    return sample


def _low_bits(values: npt.NDArray[np.uint32] | npt.NDArray[np.int64], width: int) -> BitArray:
    """The lowest bits of each, the lowest of all first."""
    whole = np.unpackbits(values.astype("<u4").view(np.uint8), bitorder="little").reshape(-1, 32)
    return whole[:, :width].reshape(-1)


def _numbers_from_bits(bits: BitArray, count: int, width: int) -> npt.NDArray[np.uint32]:
    whole = np.zeros((count, 32), np.uint8)
    whole[:, :width] = bits.reshape(count, width)
    numbers: npt.NDArray[np.uint32] = np.packbits(whole.reshape(-1), bitorder="little").view("<u4")
    return numbers
