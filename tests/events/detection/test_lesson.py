"""Lessons: what one detector learned, taken over by another."""

from __future__ import annotations

import msgspec
import pytest

from aggregator.events.detection import BurstDetector, Lesson
from aggregator.events.detection.series import Burst
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.support.detector_stream import RULE, START_MS, DetectorStream

DAY_MINUTES = 1440


def archive_of_days(days: int) -> Lesson:
    """The lesson of ``days`` days before the start, with 20 market reports at 08:00 and a topic each hour."""
    stream = DetectorStream()
    for day in range(-days, 0):
        for hour in range(24):
            stream.send(day * DAY_MINUTES + hour * 60, f"topic{hour} place{hour}")
            if hour == 0:
                for i in range(20):
                    stream.send(day * DAY_MINUTES + i, "market opens higher")
    return stream.detector.lesson


def taught(lesson: Lesson, minute: float = -1) -> DetectorStream:
    """A new detector that took the lesson in its parts."""
    stream = DetectorStream()
    stream.tick(minute)
    for part in lesson.parts():
        stream.detector.learn(part)
    return stream


@pytest.mark.parametrize("days", [0, 1, 3])
def test_what_was_usual_in_the_archive_does_not_fire(days: int) -> None:
    """The market opens as on the days before: an event for a detector that knows none of them."""
    stream = taught(archive_of_days(days))
    assert stream.changes == []

    for i in range(20):
        stream.send(i, "market opens higher")
    for i in range(20):
        stream.send(21 + i, "harbour bridge collapse")

    fired = {event.terms[0] for event in stream.fired}
    assert "harbour" in fired or "bridge" in fired or "collapse" in fired
    assert len(stream.fired) == (2 if days == 0 else 1)


def test_a_lesson_is_taken_once_however_often_it_is_given() -> None:
    """Equal bytes; late articles that it contains are not counted again, those of other hours are."""
    lesson = archive_of_days(2)
    once, twice = taught(lesson), taught(lesson)
    for part in lesson.parts():
        twice.detector.learn(part)
    before = once.detector.dump()
    assert twice.detector.dump() == before

    restored = BurstDetector.load(before, RULE)
    restored.learn(lesson)
    assert restored.dump() == before
    known = once.item(0, "market opens higher", published_at_ms=START_MS - DAY_MS)
    unknown = once.item(0, "market opens higher", published_at_ms=START_MS - 4 * DAY_MS)
    documents = dict(once.detector.baseline.documents_by_hour)
    for item in (known, unknown):
        once.observe(item)
    added = {
        hour: count - documents.get(hour, 0)
        for hour, count in once.detector.baseline.documents_by_hour.items()
        if count != documents.get(hour, 0)
    }

    assert added == {START_MS // HOUR_MS - 96: 1}


def test_what_the_service_saw_itself_is_kept_where_it_is_more() -> None:
    """Of two counts of an hour the larger one is true; the present window belongs to the service."""
    stream = DetectorStream()
    for i in range(10):
        stream.send(-DAY_MINUTES + i / 10, "ferry late")
    stream.send(0, "ferry late")
    yesterday, now = START_MS // HOUR_MS - 24, START_MS // HOUR_MS
    hours = [(yesterday, 9, {"": 9, "ferry": 9}), (now, 50, {"": 50}), (now + 3, 50, {"": 50})]
    stream.detector.learn(Lesson([(h, n, c) for h, n, c in hours], []))
    assert stream.detector.baseline.documents_by_hour == {yesterday: 10, now: 1}

    stream.detector.learn(Lesson([(yesterday, 11, {"": 11, "tram": 11})], []))

    assert stream.detector.baseline.documents_by_hour == {yesterday: 11, now: 1}
    assert "ferry" not in stream.detector.baseline.counts_by_hour[yesterday]


def test_lessons_are_forgotten_on_request() -> None:
    """What the service learned itself stays; a late article is counted again."""
    stream = DetectorStream()
    stream.send(-DAY_MINUTES, "ferry late")
    stream.tick(0)
    stream.detector.series.bursts = [Burst(7, START_MS - 9 * DAY_MS, 30, ["own"])]
    before = stream.detector.learned_history, list(stream.detector.series.bursts)
    yesterday = START_MS // HOUR_MS - 30
    burst = Burst(1, START_MS - 8 * DAY_MS, 30, ["retail"])
    wrong = Lesson([(yesterday, 5, {"": 5, "tram": 5}), (START_MS // HOUR_MS - 24, 1, {"": 1})], [burst])
    for part in wrong.parts():
        stream.detector.learn(part)
    assert len(stream.detector.series.bursts) == 2 and yesterday in stream.detector.baseline.learned_hours

    stream.detector.learn(Lesson([], [], forget=True))

    assert (stream.detector.learned_history, stream.detector.series.bursts) == before
    assert stream.detector.baseline.learned_hours == set()
    assert stream.detector.baseline.expected("tram", START_MS // HOUR_MS) == 0.0


def test_hours_before_the_memory_of_the_baseline_are_not_taken() -> None:
    """Seven days and one window."""
    stream = DetectorStream()
    stream.tick(0)
    hour = START_MS // HOUR_MS
    stream.detector.learn(Lesson([(hour - 172, 5, {"": 5}), (hour - 173, 5, {"": 5})], []))

    assert list(stream.detector.baseline.documents_by_hour) == [hour - 172]


def test_bursts_of_months_ago_are_learned_once() -> None:
    """Those older than 400 days are not, nor one that is known already."""
    stream = DetectorStream()
    stream.tick(0)
    old, month, again = (Burst(5, START_MS - days * DAY_MS, 30, ["retail", "sale"]) for days in (401, 30, 30))
    again.at_ms += HOUR_MS

    stream.detector.learn(Lesson([], [old, month]))
    stream.detector.learn(Lesson([], [again]))

    assert [burst.at_ms for burst in stream.detector.series.bursts] == [month.at_ms]
    for i in range(16):
        stream.send(i, terms=(("retail", 1.0), ("sale", 1.0)))
    assert stream.fired == [] or stream.fired[0].expected == 15.0


def test_the_parts_of_a_lesson_are_the_lesson() -> None:
    """One hour each, and the bursts."""
    lesson = archive_of_days(1)
    parts = list(lesson.parts())

    assert [hour for part in parts for hour in part.hours] == lesson.hours
    assert [burst for part in parts for burst in part.bursts] == lesson.bursts
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(parts[0]), type=Lesson) == parts[0]
