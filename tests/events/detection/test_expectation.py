"""What is expected of a story: routine, volume of the stream, sensitivity, sources."""

from __future__ import annotations

import pytest

from aggregator.events.detection import BurstDetector, BurstRule, SourceFamilies
from tests.support.detector_stream import DetectorStream


def test_an_event_needs_min_sources() -> None:
    """A story does not fire before items of three sources have joined."""
    stream = DetectorStream(BurstRule(min_sources=3))
    for i in range(20):
        stream.send(i, source="one.example", title=f"Item {i}")
    stream.send(21, source="two.example")

    assert stream.fired == []
    stream.send(22, source="three.example")
    assert [event.size for event in stream.fired] == [22]


def test_a_family_counts_as_one_source() -> None:
    """One newswire text in three outlets of one chain is not three sources."""
    stream = DetectorStream(BurstRule(min_sources=2))
    families = SourceFamilies.of({"two.example": "one.example", "three.example": "one.example"})
    stream.detector.set_families(families)
    for i, name in enumerate(("one", "two", "three") * 7):
        stream.send(i, source=f"{name}.example", title=f"Item {i}")

    assert stream.fired == []
    assert BurstDetector.load(stream.detector.dump(), stream.detector.rule).families == families
    stream.detector.set_families(SourceFamilies())
    stream.send(22, source="one.example", title="Item 22")
    assert [event.size for event in stream.fired] == [22]


def send_daily_routine(stream: DetectorStream, count: int, days: int = 7) -> None:
    """Send the same announcement ``count`` times every morning."""
    for day in range(days):
        for i in range(count):
            stream.send((day - days) * 24 * 60 + i, f"fund value per share company{i}")
        stream.send((day - days) * 24 * 60 + 300, "weather harbour quiet")


def test_a_daily_routine_does_not_fire() -> None:
    """As many items as on every day of the last week."""
    stream = DetectorStream()
    send_daily_routine(stream, 30)
    stream.changes.clear()

    for i in range(30):
        stream.send(i, f"fund value per share company{i}")

    assert stream.fired == []


def test_a_routine_at_several_times_its_volume_fires() -> None:
    """The event reports what was expected."""
    stream = DetectorStream()
    send_daily_routine(stream, 10)
    stream.changes.clear()

    for i in range(80):
        stream.send(i, f"fund value per share company{i}")

    assert len(stream.fired) == 1
    assert stream.fired[0].expected > 4


def test_sensitivity_scales_the_excess_that_fires() -> None:
    """Over 4 expected items each further one counts twice: 4 times 34.4, or twice at sensitivity 2."""
    found = {}
    for sensitivity in (1.0, 2.0):
        stream = DetectorStream(BurstRule(sensitivity=sensitivity))
        for day in range(-7, 1):
            for i in range(24 if day else 150):
                stream.send(day * 24 * 60 + i, terms=(("fund", 1.0), ("value", 1.0)))
        found[sensitivity] = [(event.size, event.expected) for event in stream.fired[1:]]

    # Expected: 24 in five hours of every day, so 19.2 in four. The very first morning fired as well.
    assert found == {1.0: [(138, 19.2)], 2.0: [(69, 19.2)]}


def send_routine_week(stream: DetectorStream, families: int, last_hour: int) -> None:
    """Send one item an hour from each of some templates for 7 days, then ``last_hour`` of each in an hour."""
    templates = [f"notice{f} filing{f} holding{f}" for f in range(families)]
    for hour in range(7 * 24):
        for f, template in enumerate(templates):
            stream.send(hour * 60 + f, template)
    for i in range(last_hour):
        for template in templates:
            stream.send(7 * 24 * 60 + i * 60 / last_hour, template)


@pytest.mark.parametrize("peak", [10, 40])
def test_a_peak_of_the_whole_stream_does_not_fire(peak: int) -> None:
    """10 and 40 times the volume of every template: none exceeds the stream as a whole."""
    stream = DetectorStream()
    send_routine_week(stream, families=6, last_hour=peak)

    assert stream.fired == []


def test_a_new_story_fires_within_a_peak_of_routine() -> None:
    """40 times the volume does not hide it."""
    stream = DetectorStream()
    send_routine_week(stream, families=6, last_hour=40)
    stream.send_burst(16, start=7 * 24 * 60 + 61)

    assert [event.title.split()[0] for event in stream.fired] == ["Harbour"]
