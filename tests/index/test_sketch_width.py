"""Sketch widths: the stored values are pinned, and damaged ones are refused."""

import pytest

from aggregator.errors import DamagedValue
from aggregator.index import keys
from aggregator.index.sketch_width import INITIAL_WIDTH, SketchWidth, decode_sketch_width


@pytest.mark.parametrize(
    ("stored", "width", "bits_to_read"),
    [
        (None, SketchWidth(18), (18,)),
        (b"18>19", SketchWidth(19, 18), (18, 19)),
        (b"19", SketchWidth(19), (19,)),
        (b"23>24", SketchWidth(24, 23), (23, 24)),
        (b"24", SketchWidth(24), (24,)),
    ],
)
def test_stored_values_are_pinned(
    stored: bytes | None, width: SketchWidth, bits_to_read: tuple[int, ...]
) -> None:
    """A segment without one, also of an earlier version, has 18 bits."""
    assert decode_sketch_width(stored) == width
    assert width.encode() == stored
    assert width.bits_to_read == bits_to_read
    assert width.is_rehashing == (len(bits_to_read) == 2)


def test_a_rehash_adds_one_bit() -> None:
    """Both widths are read from its first to its last move."""
    rehashing = INITIAL_WIDTH.begin_rehash()

    assert (rehashing.encode(), rehashing.end_rehash().encode()) == (b"18>19", b"19")
    assert keys.MAX_SKETCH_BUCKET_BITS == 24


@pytest.mark.parametrize("stored", [b"", b"18", b"17>18", b"18>20", b"24>25", b"19>18", b"nineteen", b"19\n"])
def test_damaged_values_are_refused(stored: bytes) -> None:
    """Rather than that look-ups read buckets that hold nothing."""
    with pytest.raises(DamagedValue, match="width of sketch buckets"):
        decode_sketch_width(stored)
