"""Hourly counts of terms over the last week: expected documents, cold start, bounded memory."""

from __future__ import annotations

import random
import sys

import pytest

from aggregator.events.detection.baseline import Baseline
from aggregator.time_units import HOUR_MS
from tests.support.detector_stream import DetectorStream, time_ms


def test_the_same_weekday_counts_more_than_other_days() -> None:
    """Ten documents a week ago at this hour are expected more than ten six days ago."""
    same, other = Baseline(4 * HOUR_MS), Baseline(4 * HOUR_MS)
    for baseline in (same, other):
        baseline.add(1, ["start"])
    for _ in range(10):
        same.add(1000 - 7 * 24, ["term"])
        other.add(1000 - 6 * 24, ["term"])

    assert same.expected("term", 1000) > other.expected("term", 1000) > 0


@pytest.mark.parametrize(
    ("hours_before", "expected"),
    [
        ([4, 4, 4], 1),
        ([3, 3, 3], 0),  # in the window
        ([4, 4], 0),
        ([27, 27, 27], 1),  # the same day
        ([28, 28, 28, 5, 6, 7], 2),
        ([4 + 24 * day for day in range(9)] * 3, 7),
    ],
)
def test_busy_days_are_those_with_enough_documents(hours_before: list[int], expected: int) -> None:
    """Days are counted back from the window, each of 24 hours."""
    baseline = Baseline(4 * HOUR_MS)
    for hours in hours_before:
        baseline.add(1000 - hours, ["term"])

    assert baseline.days_with("term", 3, 1000) == expected


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
            baseline.add_late(hour, ["fund"], 1003)
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
        baseline.add_late(hour, ["fund"], 1003)
    baseline.refresh_totals(1003)

    assert baseline.known_hour == 1000


def test_an_article_older_than_the_history_is_not_counted() -> None:
    """Of seven days and one window."""
    baseline = Baseline(4 * HOUR_MS)
    baseline.add_late(1000 - 7 * 24 - 4, ["fund"], 1000)
    baseline.add_late(1000 - 7 * 24 - 5, ["bond"], 1000)

    assert list(baseline.counts_by_hour.values()) == [{"fund": 1}]


def test_a_backlog_teaches_what_is_usual_at_its_hours() -> None:
    """Notices of every hour of two days, all delivered at once, in any order, are routine at the end."""
    stream, rng = DetectorStream(), random.Random(2)
    minutes = [m for m in range(-48 * 60, 0) if m % 2]
    rng.shuffle(minutes)
    for minute in minutes:
        words = f"fund value share company{minute}" if minute % 3 else f"weather harbour quiet{minute}"
        stream.send(0, words, published_at_ms=time_ms(minute))
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
