"""Compressed form of a sketch's hashes: about 12 bits per hash instead of 32.

    bytes 0..1    number of hashes, little-endian
    byte 2        k, the width of the lower part of a gap
    then bits     the lowest 12 of each of the first eight hashes, which are the sketch keys and kept whole;
                  the lower k bits of each gap; the upper part of each gap in unary: that many zeros and a one

The hashes are sorted and uniformly distributed, so the gaps between them (in steps of 2**12) are
geometrically distributed; this code is nearly optimal for them (Golomb 1966, Rice 1979).
``shingles.estimate_overlaps`` compares the upper 20 bits of a hash, which are kept; the lower bits of all
but the first eight hashes become zero.
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
    """Encode a sorted sample, (n,) uint32."""
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
    """Decode a sample, (n,) uint32; the lowest 12 bits of the hashes after the first eight are zero.

    Raises ValueError if the data is truncated.
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
    # Before the i-th one there are the upper parts of all gaps up to it, and i ones.
    above = (ends - np.arange(count)) << k
    steps = above + _numbers_from_bits(bits[fine : fine + lower], count, k).cumsum(dtype=np.int64)
    if steps[-1] >> _MAX_GAP_BITS:
        raise ValueError("a sample has a hash of more than 32 bits")
    sample: npt.NDArray[np.uint32] = (steps << IGNORED_LOW_BITS).astype(np.uint32)
    sample[:whole] |= _numbers_from_bits(bits[:fine], whole, IGNORED_LOW_BITS)
    return sample


def encode_opening(opening: npt.NDArray[np.bool_]) -> bytes:
    """Encode the flags of a sketch, (n,): whether each sampled hash is in the opening, 8 per byte."""
    return np.packbits(opening).tobytes()


def decode_opening(data: bytes, sample_size: int) -> npt.NDArray[np.bool_]:
    """Decode ``encode_opening``, (sample_size,); no data: all False. Raises ValueError if sizes differ."""
    if not data:
        return np.zeros(sample_size, np.bool_)
    if len(data) != (sample_size + 7) // 8:
        raise ValueError("the flags of the opening do not match the sample")
    return np.unpackbits(np.frombuffer(data, np.uint8), count=sample_size).view(np.bool_)


def _low_bits(values: npt.NDArray[np.uint32] | npt.NDArray[np.int64], width: int) -> BitArray:
    """The lowest ``width`` bits of each value, least significant first."""
    whole = np.unpackbits(values.astype("<u4").view(np.uint8), bitorder="little").reshape(-1, 32)
    return whole[:, :width].reshape(-1)


def _numbers_from_bits(bits: BitArray, count: int, width: int) -> npt.NDArray[np.uint32]:
    whole = np.zeros((count, 32), np.uint8)
    whole[:, :width] = bits.reshape(count, width)
    numbers: npt.NDArray[np.uint32] = np.packbits(whole.reshape(-1), bitorder="little").view("<u4")
    return numbers
