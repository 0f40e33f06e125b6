"""Hourly counts of terms over the last week: expected documents, cold start, bounded memory."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.detection.baseline import Baseline, find_known_hour
from aggregator.events.detection.model import LearnedHistory, LearningStatus
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.support.detector_stream import START_MS, DetectorStream, time_ms


def test_the_same_weekday_counts_more_than_other_days() -> None:
    """Ten documents a week ago at this hour are expected more than ten six days ago."""
    same, other = Baseline(4 * HOUR_MS), Baseline(4 * HOUR_MS)
    for baseline in (same, other):
        baseline.add(1, ["start"])
    for _ in range(10):
        same.add(1000 - 7 * 24, ["term"])
        other.add(1000 - 6 * 24, ["term"])

    assert same.expected("term", 1000) > other.expected("term", 1000) > 0


def test_the_table_of_totals_shrinks_with_its_terms() -> None:
    """After three weeks with new words every hour its size in memory equals that of a copy."""
    baseline = Baseline(4 * HOUR_MS)
    for hour in range(21 * 24):
        baseline.add(hour, [f"{hour}-{number}" for number in range(80)])
        baseline.refresh_totals(hour)

    assert len(baseline._document_frequencies) == 80 * len(baseline.counts_by_hour)
    assert sys.getsizeof(baseline._document_frequencies) == sys.getsizeof(
        dict(baseline._document_frequencies)
    )


def test_history_is_forgotten_after_a_week() -> None:
    """Memory depends on the windows alone."""
    stream = DetectorStream()
    for day in range(30):
        stream.send_burst(5, start=day * 24 * 60)

    assert len(stream.detector.baseline.counts_by_hour) <= 8 * 5
    assert set(stream.detector.baseline._document_frequencies) >= {"harbour"}
    assert len(stream.detector.window) == 5


@pytest.mark.parametrize("stalled", [False, True])
def test_common_words_do_not_hide_an_event_on_the_first_day(stalled: bool) -> None:
    """Without history frequent words count as expected, also while the clock does not advance."""
    stream, rng = DetectorStream(), random.Random(1)
    common = [f"word{i}" for i in range(1500)]
    for i in range(2000):
        stream.send(0 if stalled else i / 100, " ".join(rng.sample(common, 8)))
    for i in range(18):
        words = f"brackwater viaduct inquest witness {' '.join(rng.sample(common, 5))}"
        stream.send(0 if stalled else 20 + i / 10, words)
    stream.tick(1 if stalled else 30)

    (event,) = stream.fired
    assert event.title.startswith("Brackwater viaduct inquest")
    assert stream.last_event().size == 18


def test_late_articles_extend_the_known_history() -> None:
    """Two days of an archive at the present volume are known; nothing else has changed about the stream."""
    baseline = Baseline(4 * HOUR_MS)
    for hour in range(1000, 1004):
        for _ in range(10):
            baseline.add(hour, ["storm"])
    baseline.refresh_totals(1003)
    assert (baseline.known_hour, baseline.missing_share(1003)) == (1000, 1.0)

    for hour in range(952, 1000):
        for _ in range(10):
            baseline.add_late(hour, ["fund"])
    baseline.refresh_totals(1003)

    assert (baseline.first_hour, baseline.known_hour) == (1000, 952)
    assert baseline.missing_share(1003) == 0.0
    assert baseline.expected("fund", 1003) == pytest.approx(40, rel=0.1)


def test_a_few_old_articles_of_a_feed_are_no_history() -> None:
    """A feed that lists one article an hour of a stream of ten does not end the first day."""
    baseline = Baseline(4 * HOUR_MS)
    for hour in range(1000, 1004):
        for _ in range(10):
            baseline.add(hour, ["storm"])
    for hour in range(952, 1000):
        baseline.add_late(hour, ["fund"])
    baseline.refresh_totals(1003)

    assert baseline.known_hour == 1000


def test_an_article_older_than_the_history_is_not_counted() -> None:
    """Of seven days and one window."""
    baseline = Baseline(4 * HOUR_MS)

    assert baseline.covers(1000 - 7 * 24 - 4, 1000)
    assert not baseline.covers(1000 - 7 * 24 - 5, 1000)


def test_a_backlog_teaches_what_is_usual_at_its_hours() -> None:
    """Notices of every hour of two days, all delivered at once, in any order, are routine at the end."""
    stream, rng = DetectorStream(), random.Random(2)
    minutes = [m for m in range(-48 * 60, 0) if m % 2]
    rng.shuffle(minutes)
    for minute in minutes:
        words = f"fund value share company{minute}" if minute % 3 else f"weather harbour quiet{minute}"
        stream.send(0, words, published_at_ms=time_ms(minute), backfill=True)
    for i in range(18):
        stream.send(1 + i / 10, "ferry aground rescue", published_at_ms=time_ms(0), source=f"{i}.example")
    stream.tick(5)

    assert [event.title.split()[0] for event in stream.fired] == ["Ferry"]


def test_a_gap_of_weeks_does_not_end_the_history() -> None:
    """What was usual before it is expected after it, as if the weeks without documents had not been."""
    silent, continuous = Baseline(4 * HOUR_MS), Baseline(4 * HOUR_MS)
    gap = 5 * 7 * 24
    for hour in range(1000, 1000 + 10 * 24):
        silent.add(hour, ["dividend"])
        continuous.add(hour, ["dividend"])
        silent.refresh_totals(hour)
        continuous.refresh_totals(hour)
    resumed = 1000 + 12 * 24
    for hour in range(1000 + 10 * 24, resumed + gap):
        silent.refresh_totals(hour)  # the clock advances without documents
    silent.add(resumed + gap, ["flood"])
    silent.refresh_totals(resumed + gap)
    continuous.add(resumed, ["flood"])
    continuous.refresh_totals(resumed)

    assert silent.expected("dividend", resumed + gap) == continuous.expected("dividend", resumed) > 2
    assert silent.missing_share(resumed + gap) == 0
    assert min(silent.counts_by_hour) - gap == min(continuous.counts_by_hour)


def test_after_a_trial_and_a_gap_the_first_day_begins() -> None:
    """Three documents before a gap of weeks are no history."""
    baseline = Baseline(4 * HOUR_MS)
    for _ in range(3):
        baseline.add(1000, ["trial"])
    for _ in range(100):
        baseline.add(3000, ["story"])
    baseline.refresh_totals(3000)

    assert baseline.missing_share(3000) == 1.0


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
    """As after a backfill and before the first article."""
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
        (range(168, 400), 0.0),  # older than a week
    ],
)
def test_days_with_documents_count(hours_ago: Iterable[int], days: float) -> None:
    """The first one by its hours."""
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
    if max(hours_ago, default=0) < 168:
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
            at_ms = START_MS - (5 + hour) * HOUR_MS
            stream.send(1, f"word{hour} item{i}", published_at_ms=at_ms, backfill=True)
    stream.tick(2)

    assert before == pytest.approx(1 / 24)
    assert 1.9 < stream.detector.learned_history.status(START_MS).known_days <= 2.3
    assert stream.detector.learned_history.status(START_MS + 9 * DAY_MS).known_days == 0.0
