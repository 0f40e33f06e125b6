"""Developments: new terms and a doubling in a story after its alert, while its event is open and after."""

from __future__ import annotations

import pytest

from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import CHANCE_ITEMS, BurstRule
from aggregator.events.detection.voices import MIN_VOICES
from tests.support.detector_stream import RULE, DetectorStream

HOUR = 60
STORY = "harbour bridge collapse"


def running_story(rule: BurstRule = RULE) -> DetectorStream:
    """A stream of one wire with two days of other articles, and a story that fired 20 h ago and closed."""
    stream = DetectorStream(rule)
    quiet(stream, -48, 0)
    stream.send_burst(40, source="wire")
    quiet(stream, 1, 20)
    assert [event.status for event in stream.events_of_kind("closed")] == ["closed"]
    return stream


def quiet(stream: DetectorStream, from_hour: int, until_hour: int) -> None:
    """Other articles, four an hour, half of them about what the council does."""
    for minute in range(from_hour * HOUR, until_hour * HOUR, 15):
        words = f"council matter{minute}" if minute % 2 else f"market{minute} report{minute}"
        stream.send(minute, words, source="wire")


def go_on(stream: DetectorStream, *words: str, hour: float = 20, source: str = "") -> None:
    """Articles of three wires about the story with these further words, one a minute."""
    for n, more in enumerate(words):
        stream.send(hour * HOUR + n, told(n, more), source=source or f"wire{n % 3}.example")


def told(n: int, more: str) -> str:
    """The words of an article about the story, in an order of its own: wires have no frame."""
    first, *rest = STORY.split()[n % 3 :] + STORY.split()[: n % 3]
    return " ".join([first, more, *rest] if n % 2 else [more, first, *rest])


@pytest.mark.parametrize("times", [CHANCE_ITEMS - 1, CHANCE_ITEMS])
def test_several_headlines_with_a_new_word_are_a_development(times: int) -> None:
    """Of a story with half of the items of an event; fewer are a side of it."""
    stream = running_story()

    go_on(stream, *[""] * 6, *["mayor"] * times)

    found = [event.developments for event in stream.events_of_kind("development")]
    assert [terms for ((_, terms),) in found] == [("mayor",)] * (times == CHANCE_ITEMS)


def test_an_event_that_had_closed_goes_on_under_its_id() -> None:
    """With the new items, open again, and it closes again; nothing fires."""
    stream = running_story()
    closed = stream.events_of_kind("closed")[0]

    go_on(stream, *[""] * 6, *["mayor"] * 4)

    (event,) = stream.events_of_kind("development")
    assert (event.id, event.status, event.detected_at_ms) == (closed.id, "breaking", closed.detected_at_ms)
    assert event.size > closed.size and event.peak < closed.peak
    quiet(stream, 21, 26)
    assert [e.id for e in stream.events_of_kind("closed")] == [closed.id] * 2
    assert len(stream.fired) == 1


def test_what_the_story_or_the_stream_says_anyway_is_no_development() -> None:
    """Nor one headline again and again, nor anything within hours of the alert."""
    stream = running_story()

    go_on(stream, *[""] * 6, *["council"] * 4)
    for minute in range(4):
        stream.send(20 * HOUR + 20 + minute, terms=tuple((w, 1.0) for w in f"{STORY} mayor".split()))
    assert stream.events_of_kind("development") == []

    soon = DetectorStream()
    quiet(soon, -48, 0)
    soon.send_burst(20, source="wire")
    go_on(soon, *["mayor"] * 6, hour=1)
    assert len(soon.fired) == 1
    assert soon.events_of_kind("development") == []


@pytest.mark.parametrize("voices", [MIN_VOICES - 1, MIN_VOICES])
def test_where_voices_are_counted_several_of_them_say_it(voices: int) -> None:
    """One outlet with many headlines makes no development."""
    stream = running_story(BurstRule(adapts=True, min_sources=0))
    for n in range(8):  # a desk of several outlets
        stream.send(20 * HOUR + n, f"weather{n} report{n}", source=f"desk{n}.example")

    go_on(stream, *[""] * 8, hour=20.2)
    for n in range(2 * MIN_VOICES):
        stream.send(20.5 * HOUR + n, told(n, "mayor"), source=f"outlet{n % voices}.example")

    assert len(stream.events_of_kind("development")) == (voices == MIN_VOICES)


def test_stories_are_saved_with_the_detector() -> None:
    """A detector that was loaded between two items finds the same development."""
    stream, twin = running_story(), running_story()
    go_on(stream, *[""] * 6, *["mayor"] * 2)
    go_on(twin, *[""] * 6, *["mayor"] * 2)
    twin.detector = BurstDetector.load(twin.detector.dump(), RULE)

    for each in (stream, twin):
        go_on(each, "mayor", hour=20.5)

    assert len(twin.events_of_kind("development")) == 1
    assert twin.detector.dump() == stream.detector.dump()


def test_a_regular_subject_of_the_first_day_is_not_watched() -> None:
    """Until a day is known, what is usual is not."""
    stream = DetectorStream()
    stream.send_burst(40, source="wire")
    quiet(stream, 1, 40)

    go_on(stream, *[""] * 6, *["mayor"] * 4, hour=40)

    assert stream.events_of_kind("development") == []
