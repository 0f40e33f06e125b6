"""Compressed sketch samples: what a round trip keeps, the stored form, and damaged data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.shingles import IGNORED_LOW_BITS, MAX_SKETCH_KEYS, build_sketch, decode_marks
from aggregator.index.codec.sketches import decode_sketch_samples, encode_sketch_sample


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
    """Of different lengths and gap widths, empty ones among them."""
    encoded = [encode_sketch_sample(np.array(sorted(values), np.uint32)) for values in samples]
    decoded = decode_sketch_samples(encoded)
    assert [s.tolist() for s in decoded] == [decode_sketch_samples([data])[0].tolist() for data in encoded]


def test_one_damaged_sample_among_others_is_noticed() -> None:
    """Also where the bits that it lacks are those that its neighbor has too many."""
    whole = encode_sketch_sample(np.arange(0, 2**22, 2**14, dtype=np.uint32))
    for damaged in ([whole[:-1], whole + b"\x80"], [whole, whole[:2]], [whole + b"\x80", whole]):
        with pytest.raises(ValueError, match="a sample"):
            decode_sketch_samples(damaged)


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


@given(st.binary(max_size=40))
def test_marks_are_stored_as_they_are(data: bytes) -> None:
    """One byte per sampled hash; another number of them is damage."""
    marks = decode_marks(data, len(data))
    assert marks.tobytes() == data and marks.dtype == np.uint8
    for size in {len(data) + 1, max(0, len(data) - 1)} - {len(data)}:
        with pytest.raises(ValueError, match="do not match the sample"):
            decode_marks(data, size)


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
