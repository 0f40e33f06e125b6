"""Known history: late documents that extend it, and the learning status."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.detection.known_history import LearnedHistory, LearningStatus, find_known_hour
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.support.detector_stream import START_MS, DetectorStream

FIRST = 1000


@pytest.mark.parametrize(
    ("late_per_hour", "expected"),
    [
        ({}, FIRST),
        ({1: 10, 2: 10}, FIRST - 48),  # two days like the present ones
        ({1: 3, 2: 3}, FIRST - 48),  # 0.3 of the present volume
        ({1: 2}, FIRST),  # what a feed lists when it is first read
        ({2: 30}, FIRST - 48),  # a pause between them
        ({5: 10}, FIRST),  # one day long ago
        ({1: 10, 8: 1}, FIRST - 24),  # and a few older ones
    ],
)
def test_late_days_are_known_where_they_are_dense(late_per_hour: dict[int, int], expected: int) -> None:
    """Ten documents an hour since the first one; late ones by number of days before it."""
    documents = dict.fromkeys(range(FIRST, FIRST + 24), 10)
    for day, per_hour in late_per_hour.items():
        documents |= dict.fromkeys(range(FIRST - 24 * day, FIRST - 24 * (day - 1)), per_hour)

    assert find_known_hour(documents, FIRST, 4) == expected


def test_without_a_live_document_the_late_ones_are_the_history() -> None:
    """As after ``aggregator learn`` and before the first article."""
    assert find_known_hour({}, None, 4) is None
    assert find_known_hour(dict.fromkeys(range(100, 148), 5), None, 4) == 100


@pytest.mark.parametrize(
    ("trial", "hours", "expected"),
    [
        ({30: 1}, 3, FIRST),  # one article the day before
        ({100: 1, 40: 2}, 3, FIRST),
        ({30: 1}, 1, FIRST - 30),  # ten articles are not much more than one
        ({10: 1}, 10, FIRST - 10),  # the same day
        (dict.fromkeys(range(48, 0, -1), 1), 24, FIRST - 48),  # a weekend
    ],
)
def test_a_trial_before_the_stream_is_no_history(trial: dict[int, int], hours: int, expected: int) -> None:
    """Live documents by number of hours before the stream, which has ten an hour (but sixty for a trial)."""
    per_hour = 60 if hours == 3 else 10
    documents = {FIRST - ago: count for ago, count in trial.items()}
    documents |= dict.fromkeys(range(FIRST, FIRST + hours), per_hour)

    assert find_known_hour(documents, min(documents), 4) == expected


def test_a_history_of_over_a_week_is_not_a_trial() -> None:
    """Its oldest day is dropped hour by hour, and has few documents at the end."""
    documents = {1000: 1} | dict.fromkeys(range(1001, 1160), 100)

    assert find_known_hour(documents, 10, 4) == 10


NOW_HOUR = 480_007
NOW_MS = NOW_HOUR * HOUR_MS


def days_of(hours_ago: Iterable[int], known_hours_ago: int | None = None) -> float:
    """Known days with documents in these hours, counted back from now."""
    hours = {NOW_HOUR - ago: 5 for ago in hours_ago}
    known_hour = min(hours, default=None) if known_hours_ago is None else NOW_HOUR - known_hours_ago
    return LearnedHistory(known_hour, hours).status(NOW_MS).known_days


@pytest.mark.parametrize(
    ("hours_ago", "days"),
    [
        ([], 0.0),
        ([0], 1 / 24),
        (range(12), 0.5),
        (range(48), 2.0),
        (range(7 * 24), 7.0),
        ([d * 24 + h for d in range(7) for h in range(10)], 6 + 10 / 24),  # office hours, not a week yet
        ([d * 24 + 3 for d in range(8)], 7.0),  # one article a day
        ([*range(24), *range(72, 96)], 2.0),  # an outage of two days
        ([*range(12), 47], 1 + 1 / 6),  # one article yesterday, then half a day
        (range(168, 400), 0.0),  # older than a week
    ],
)
def test_days_count_by_their_hours_with_documents(hours_ago: Iterable[int], days: float) -> None:
    """A day counts fully from six hours on, or from the most that any day has."""
    assert days_of(hours_ago) == pytest.approx(days)


def test_days_without_documents_are_a_habit_of_an_old_stream() -> None:
    """Weekends without an article after two weeks; not after one, and not most of a week."""
    five_days, three_days = range(48, 168), range(96, 168)

    assert days_of(five_days, 14 * 24) == 7.0
    assert days_of(five_days, 13 * 24) == 5.0
    assert days_of(three_days, 30 * 24) == 3.0


@given(st.sets(st.integers(-10, 250), max_size=80), st.integers(-5, 500))
def test_the_days_are_between_0_and_7_and_grow_with_documents(
    hours_ago: set[int], known_hours_ago: int
) -> None:
    """Whatever the clock says."""
    days = days_of(hours_ago, known_hours_ago)

    assert 0.0 <= days <= 7.0
    if max(hours_ago, default=0) < 168 and len(hours_ago) >= 6:
        assert days_of({*hours_ago, *range(168)}, known_hours_ago) >= days


def test_the_status_is_one_sentence() -> None:
    """Only whole days count as known."""
    assert str(LearningStatus(2.96)) == "learning: 2 of 7 days"
    assert (LearningStatus(6.99).is_complete, LearningStatus(7.0).is_complete) == (False, True)


def test_late_articles_are_learned_history() -> None:
    """Those of two days before the stream began."""
    stream = DetectorStream()
    stream.send(0, "alpha")
    before = stream.detector.learned_history.status(START_MS).known_days
    for hour in range(48):
        for i in range(3):
            stream.send(1, f"word{hour} item{i}", published_at_ms=START_MS - (5 + hour) * HOUR_MS)
    stream.tick(2)

    assert before == pytest.approx(1 / 24)
    assert 1.9 < stream.detector.learned_history.status(START_MS).known_days <= 2.3
    assert stream.detector.learned_history.status(START_MS + 9 * DAY_MS).known_days == 0.0
