"""Learning status: days of history by hours with documents."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.detection.learning import LearnedHistory, LearningStatus
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.support.detector_stream import START_MS, DetectorStream

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
