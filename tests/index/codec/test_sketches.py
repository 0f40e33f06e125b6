"""Compressed sketch samples: what a round trip keeps, the stored form, and damaged data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.shingles import IGNORED_LOW_BITS, MAX_SKETCH_KEYS, build_sketch
from aggregator.index.codec.sketches import (
    decode_opening,
    decode_openings,
    decode_sketch_samples,
    encode_opening,
    encode_sketch_sample,
)


@given(st.sets(st.integers(0, 2**32 - 1), max_size=200))
def test_packed_samples_keep_sketch_keys_and_upper_bits(values: set[int]) -> None:
    """The first eight hashes are kept whole, the others without their lowest bits."""
    sample = np.array(sorted(values), np.uint32)
    decoded = decode_sketch_samples([encode_sketch_sample(sample)])[0]
    assert decoded.dtype == np.uint32
    assert decoded[:MAX_SKETCH_KEYS].tolist() == sample[:MAX_SKETCH_KEYS].tolist()
    assert (decoded >> IGNORED_LOW_BITS).tolist() == (sample >> IGNORED_LOW_BITS).tolist()


@given(st.lists(st.sets(st.integers(0, 2**32 - 1), max_size=40), max_size=12))
def test_samples_are_decoded_together_as_one_by_one(samples: list[set[int]]) -> None:
    """Of different lengths and gap widths, empty ones among them; their flags too."""
    encoded = [encode_sketch_sample(np.array(sorted(values), np.uint32)) for values in samples]
    decoded = decode_sketch_samples(encoded)
    assert [s.tolist() for s in decoded] == [decode_sketch_samples([data])[0].tolist() for data in encoded]
    flags = [encode_opening(sample & 1 == 1) if i % 3 else b"" for i, sample in enumerate(decoded)]
    sizes = list(map(len, decoded))
    assert [f.tolist() for f in decode_openings(flags, sizes)] == [
        decode_opening(data, size).tolist() for data, size in zip(flags, sizes, strict=True)
    ]


def test_one_damaged_sample_among_others_is_noticed() -> None:
    """Also where the bits that it lacks are those that its neighbor has too many."""
    whole = encode_sketch_sample(np.arange(0, 2**22, 2**14, dtype=np.uint32))
    for damaged in ([whole[:-1], whole + b"\x80"], [whole, whole[:2]], [whole + b"\x80", whole]):
        with pytest.raises(ValueError, match="a sample"):
            decode_sketch_samples(damaged)
    with pytest.raises(ValueError, match="do not match the sample"):
        decode_openings([b"\x00", b"\x00"], [8, 9])


def test_the_packed_sketch_is_pinned() -> None:
    """Golden value of eight whole hashes and two gaps: later versions read it."""
    sample = np.array([*range(1, 9), 3 << 12, 40 << 12], np.uint32)
    count, k = b"\x0a\x00", b"\x02"  # the mean gap is 4 steps
    fine = "".join(f"{n:012b}"[::-1] for n in range(1, 9))
    lower, above = "00" * 8 + "11" + "10", "1" * 8 + "1" + "0" * 9 + "1"  # of gaps 0, 3 and 37
    bits = fine + lower + above
    bits += "0" * (-len(bits) % 8)
    assert encode_sketch_sample(sample) == count + k + int(bits, 2).to_bytes(len(bits) // 8, "big")
    assert encode_sketch_sample(sample[:0]) == b""


def test_the_flags_of_the_opening_are_pinned() -> None:
    """Eight per byte, the first in the highest bit; missing ones are False."""
    flags = np.array([1, 0, 0, 0, 0, 0, 1, 1, 0, 1], np.bool_)

    assert encode_opening(flags) == bytes([0b10000011, 0b01000000])
    assert decode_opening(encode_opening(flags), 10).tolist() == flags.tolist()
    assert decode_opening(b"", 3).tolist() == [False] * 3
    with pytest.raises(ValueError, match="do not match the sample"):
        decode_opening(b"\x83", 10)


def test_a_hash_takes_twelve_bits() -> None:
    """For a text of 800 words, plus 12 bits for each of the eight hashes that are kept whole."""
    sample = build_sketch([f"word{n}" for n in range(800)]).sample
    packed_bytes = len(encode_sketch_sample(sample)) - MAX_SKETCH_KEYS * IGNORED_LOW_BITS / 8
    assert packed_bytes < 12.1 / 8 * len(sample)


def test_a_damaged_sample_is_rejected() -> None:
    """Bytes that end within a number, or hold one too many."""
    whole = encode_sketch_sample(np.arange(0, 2**22, 2**14, dtype=np.uint32))
    for damaged in (whole[:-1], whole[:2], whole + b"\x80", b"\xff" * len(whole)):
        with pytest.raises(ValueError, match="a sample"):
            decode_sketch_samples([damaged])[0]
