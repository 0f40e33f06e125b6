"""Life of an event: firing, reason, fading, revival, closing, merging, removal of articles."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_lowercase

from aggregator.time_units import MINUTE_MS
from tests.support.detector_stream import START_MS, DetectorStream


def test_an_event_fires_once_with_all_its_fields() -> None:
    """A growing event is not announced again; it has every field an editor needs."""
    stream = DetectorStream()

    stream.send_burst(40)

    (event,) = stream.fired
    last = stream.last_event()
    assert event.status == "breaking"
    assert (event.size, event.peak, last.size, last.peak) == (16, 16, 40, 40)
    assert event.items == tuple(f"a{i}" for i in range(1, 17))
    assert last.items[:16] == event.items and len(last.cosines) == 40
    assert event.detected_at_ms == START_MS + 15 * MINUTE_MS
    assert (event.first_seen_ms, last.last_seen_ms) == (START_MS, START_MS + 39 * MINUTE_MS)
    assert event.timeline == ((START_MS, 10), (START_MS + 10 * MINUTE_MS, 6))
    assert event.rate == 10
    assert set(event.terms[:3]) == {"Harbour", "bridge", "collapse"}
    assert event.reason.startswith("16 items from 16 sources in 15 min about ")
    assert event.title.startswith("Harbour bridge collapse")
    assert last.id == event.id


def test_the_reason_does_not_count_unnamed_sources() -> None:
    """Items without a source name are not reported as "0 sources"."""
    stream = DetectorStream()

    for minute, aspect in enumerate(ascii_lowercase[:16]):
        stream.send(minute, source="", title=f"{aspect * 4} bridge {aspect * 5}")

    assert stream.fired[0].reason.startswith("16 items in 15 min about ")


def test_an_event_fades_revives_and_closes_under_one_id() -> None:
    """Breaking -> fading -> breaking -> fading -> closed, with one alert."""
    stream = DetectorStream()
    stream.send_burst(30)
    stream.tick(256)
    assert stream.last_event().status == "fading"
    stream.send_burst(30, start=257, step=0.1)
    stream.tick(261)
    assert stream.last_event().status == "breaking"
    stream.tick(257 + 3 + 241)

    assert len(stream.fired) == 1
    assert [event.id for event in stream.events_of_kind("closed")] == [stream.fired[0].id]
    assert stream.last_event().status == "closed"
    assert stream.detector.events == []


def test_silence_longer_than_the_window_forgets_every_story() -> None:
    """Events close; window, stories and their numbers are empty."""
    stream = DetectorStream()
    stream.send_burst(40)

    stream.tick(40 + 241)

    assert stream.events_of_kind("closed") and not stream.detector.window
    assert stream.detector.stories.by_key == {} and stream.detector.stories.key_by_number == {}


def test_a_closed_event_stays_closed() -> None:
    """The same story later is a new event with another id."""
    stream = DetectorStream()
    for i in range(200):
        stream.send(i / 20 - 20, f"topic{i} place{i}")
    stream.send_burst()
    stream.tick(600)
    stream.send_burst(24, start=601)

    assert len({event.id for event in stream.fired}) == 2


def test_converging_stories_become_one_event() -> None:
    """Reports that name both sides of a story merge its two events; the first one survives."""
    stream = DetectorStream()
    for i in range(20):
        stream.send(i, "harbour bridge collapse")
        stream.send(i + 0.5, "ferry passengers rescued")
    assert len(stream.fired) == 2
    for i in range(60):
        stream.send(21 + i / 10, "harbour bridge collapse ferry passengers rescued")
    stream.tick(30)

    (absorbed,) = stream.events_of_kind("merged")
    survivor = next(event for event in stream.fired if event.id != absorbed.id)
    assert absorbed.merged_into == survivor.id and absorbed.status == "closed"
    last = [c.event for c in stream.changes if c.event.id == survivor.id][-1]
    assert last.size == 100
    assert absorbed.detected_at_ms >= survivor.detected_at_ms


def test_a_deleted_article_is_removed_from_its_event() -> None:
    """Its id and headline are removed and the size falls; the event remains."""
    stream = DetectorStream()
    stream.send_burst()
    title = stream.fired[0].title
    deleted = next(m for m in stream.detector.window if m.title == title)

    stream.observe(
        replace(stream.item(17, "x"), kind="deleted", id=deleted.id, first_version=deleted.first_version)
    )

    event = stream.last_event()
    assert deleted.id not in event.items and event.size == 15
    assert event.title != title
