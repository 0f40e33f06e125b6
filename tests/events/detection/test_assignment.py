"""The literal rule of Hu & You, ``event_rule=literal``."""

from __future__ import annotations

import random

from aggregator.events.detection.assignment import HammingMode
from aggregator.events.detection.clustering import RADIUS_BITS, WindowItem
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import BurstRule
from tests.support.detector_stream import DetectorStream


def test_the_literal_rule_counts_fingerprints_within_7_bits() -> None:
    """16 items within 7 bits of the last one, without a common word."""
    stream = DetectorStream(BurstRule(mode="literal"))
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


def test_fingerprints_of_two_spaces_are_never_near() -> None:
    """Equal bits of two feature models mean nothing."""
    stream = DetectorStream(BurstRule(mode="literal"))
    for i in range(16):
        stream.send(i, f"word{i}", fingerprint=1, space="en.1" if i % 2 else "ru.1")
    assert stream.fired == []

    for i in range(8):
        stream.send(20 + i, f"more{i}", fingerprint=1, space="en.1")
    assert [event.size for event in stream.fired] == [16]


def test_the_reason_names_the_distance() -> None:
    """The literal rule compares with nothing that is usual."""
    stream = DetectorStream(BurstRule(mode="literal"))
    stream.send_burst()

    (event,) = stream.fired
    assert "within 7 bits of one of them; more than 15 in 4 h make an event." in event.reason


def test_blocks_find_the_same_neighbors_as_brute_force() -> None:
    """Also after items were removed and after a restart."""
    random_bits = random.Random(7)
    mode = HammingMode()
    items: list[WindowItem] = []
    for number in range(400):
        base = items[random_bits.randrange(len(items))].fingerprint if number % 3 and items else None
        flipped = sum(1 << bit for bit in random_bits.sample(range(64), random_bits.randrange(12)))
        fingerprint = random_bits.getrandbits(64) if base is None else base ^ flipped
        items.append(WindowItem(number, number, str(number), 0, "", "", {}, True, 1.0, -1, fingerprint))
    for number, item in enumerate(items):
        if number == 200:
            for expired in items[:50]:
                mode.remove(expired)
            restored = HammingMode()
            for pending in mode.pending.values():
                restored.insert(pending)
            mode = restored
        window = items[50 if number >= 200 else 0 : number]
        near = [m for m in window if (m.fingerprint ^ item.fingerprint).bit_count() <= RADIUS_BITS]

        assert mode.add(item) == [*near, item]


def test_all_events_can_be_closed() -> None:
    """When another rule takes over, no event stays open without a detector."""
    stream = DetectorStream(BurstRule(mode="literal"))
    stream.send_burst()
    saved = BurstDetector.load(stream.detector.dump(), stream.detector.rule)

    assert [(c.kind, c.event.status) for c in saved.close_events()] == [("closed", "closed")]
    assert saved.events == []
