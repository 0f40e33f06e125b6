"""Compressed form of a sketch's hashes: about 12 bits per hash instead of 32.

    bytes 0..1    number of hashes, little-endian
    byte 2        k, the width of the lower part of a gap
    then bits     the lowest 12 of each of the first eight hashes, which are the sketch keys and kept whole;
                  the lower k bits of each gap; the upper part of each gap in unary: that many zeros and a one

The gaps between the sorted hashes (in steps of 2**12) are geometrically distributed; this code is nearly
optimal for them (Golomb 1966, Rice 1979). The lower bits of all but the first eight hashes become zero.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import IGNORED_LOW_BITS, MAX_SKETCH_KEYS

BitArray = npt.NDArray[np.uint8]

_HEADER = struct.Struct("<HB")
_MAX_GAP_BITS = 32 - IGNORED_LOW_BITS
_NO_SAMPLE = np.empty(0, np.uint32)


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


def decode_sketch_samples(data: Sequence[bytes]) -> list[npt.NDArray[np.uint32]]:
    """Decode samples, (n,) uint32 each; all but eight hashes lose their lowest 12 bits. Raises ValueError.

    Those of one k are decoded in one pass: a fifth of the time.
    """
    samples = [_NO_SAMPLE] * len(data)
    by_k: dict[int, list[int]] = {}
    for i, encoded in enumerate(data):
        if encoded:
            if len(encoded) <= _HEADER.size:
                raise ValueError("a sample ends within its header")
            by_k.setdefault(encoded[_HEADER.size - 1], []).append(i)
    for k, positions in by_k.items():
        decoded = _decode_samples_of_k([data[i] for i in positions], k)
        for i, sample in zip(positions, decoded, strict=True):
            samples[i] = sample
    return samples


def _decode_samples_of_k(data: Sequence[bytes], k: int) -> list[npt.NDArray[np.uint32]]:
    bits = np.unpackbits(np.frombuffer(b"".join(data), np.uint8))
    counts, unary_sizes, fine, lower, above = [], [], [], [], []
    end = 0
    for encoded in data:
        start, end = end + 8 * _HEADER.size, end + 8 * len(encoded)
        count = encoded[0] | encoded[1] << 8
        split = start + min(count, MAX_SKETCH_KEYS) * IGNORED_LOW_BITS
        upper = split + count * k
        if not count or upper >= end or k > _MAX_GAP_BITS:
            raise ValueError("a sample ends within a number")
        counts.append(count)
        unary_sizes.append(end - upper)
        fine.append(bits[start:split])
        lower.append(bits[split:upper])
        above.append(bits[upper:end])
    sizes, unary_ends = np.array(counts), np.array(unary_sizes).cumsum()
    ends = sizes.cumsum()
    (ones,) = np.concatenate(above).view(np.bool_).nonzero()
    if not np.array_equal(ones.searchsorted(unary_ends), ends):
        raise ValueError("a sample ends within a number")
    # Before the i-th one of a sample there are the upper parts of all gaps up to it, and i ones.
    first = ends - sizes
    low = _numbers_from_bits(np.concatenate(lower), len(ones), k).cumsum(dtype=np.int64)
    before = (unary_ends - unary_sizes - first) << k
    before[1:] += low[first[1:] - 1]
    ones -= np.arange(len(ones))
    ones <<= k
    ones += low
    ones -= before.repeat(sizes)
    if ones[ends - 1].max() >> _MAX_GAP_BITS:
        raise ValueError("a sample has a hash of more than 32 bits")
    hashes: npt.NDArray[np.uint32] = ones.astype(np.uint32) << np.uint32(IGNORED_LOW_BITS)
    whole = np.minimum(sizes, MAX_SKETCH_KEYS)
    fine_numbers = _numbers_from_bits(np.concatenate(fine), int(whole.sum()), IGNORED_LOW_BITS)
    hashes[np.arange(len(fine_numbers)) + (first - whole.cumsum() + whole).repeat(whole)] |= fine_numbers
    # Copies: the samples are kept for different times.
    return [hashes[a:b].copy() for a, b in zip(first.tolist(), ends.tolist(), strict=True)]


def _low_bits(values: npt.NDArray[np.uint32] | npt.NDArray[np.int64], width: int) -> BitArray:
    whole = np.unpackbits(values.astype("<u4").view(np.uint8), bitorder="little").reshape(-1, 32)
    return whole[:, :width].reshape(-1)


def _numbers_from_bits(bits: BitArray, count: int, width: int) -> npt.NDArray[np.uint16 | np.uint32]:
    columns = 16 if width <= 16 else 32
    whole = np.zeros((count, columns), np.uint8)
    whole[:, :width] = bits.reshape(count, width)
    return np.packbits(whole.reshape(-1), bitorder="little").view(f"<u{columns // 8}")
