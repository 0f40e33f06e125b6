"""The literal rule of Hu & You, mode "neighbours"."""

from __future__ import annotations

from aggregator.events.detection import BurstRule
from tests.support.detector_stream import DetectorStream


def test_the_literal_rule_counts_fingerprints_within_7_bits() -> None:
    """16 items within 7 bits of the last one, without a common word."""
    stream = DetectorStream(BurstRule(mode="neighbours"))
    for i in range(15):
        stream.send(i, f"word{i}", fingerprint=1 << i % 3)
    assert stream.fired == []
    stream.send(20, "far", fingerprint=(1 << 64) - 1)
    assert stream.fired == []

    stream.send(21, "last", fingerprint=0)
    stream.send(22, "more", fingerprint=0b1111111)
    stream.send(23, "far", fingerprint=0b11111111)
    stream.tick(24)

    (event,) = stream.fired
    assert (event.size, stream.last_event().size) == (16, 17)
    stream.tick(600)
    assert [e.id for e in stream.events_of_kind("closed")] == [event.id]
