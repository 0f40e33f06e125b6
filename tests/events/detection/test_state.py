"""The saved state: exact continuation, refused bytes, format."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.events.detection import state
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import BurstRule
from tests.events.detection.random_steps import Step, feed_steps, steps
from tests.support.detector_stream import RULE, DetectorStream


@settings(max_examples=40, deadline=None)
@given(given_steps=steps, cut=st.integers(0, 120))
def test_a_loaded_detector_continues_bit_for_bit(given_steps: list[Step], cut: int) -> None:
    """Saved and loaded at any step, it returns the same changes and reaches the same bytes."""
    rule = BurstRule(items=4)
    whole, stream = BurstDetector(rule), DetectorStream(rule)
    feed_steps(whole, stream, given_steps[:cut])
    whole.drain_changes()
    loaded = BurstDetector.load(whole.dump(), rule)
    item_count = stream.item_count
    feed_steps(whole, stream, given_steps[cut:])
    stream.item_count = item_count
    feed_steps(loaded, stream, given_steps[cut:])

    assert loaded.dump() == whole.dump()
    assert loaded.drain_changes() == whole.drain_changes()


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x02abc", b"\x01\x93\x01\x02\x03"])
def test_damaged_or_foreign_states_are_refused(data: bytes) -> None:
    """One clear error, not a partly filled detector."""
    with pytest.raises(ValueError, match="saved state"):
        BurstDetector.load(data, RULE)


@pytest.mark.parametrize("size", [0, 15, 16, 65_535, 65_536])
def test_array_headers_are_those_of_the_encoder(size: int) -> None:
    """The chunks form one MessagePack value, which other versions can read."""
    assert state._array_header(size) + b"\xc0" * size == msgspec.msgpack.encode([None] * size)
