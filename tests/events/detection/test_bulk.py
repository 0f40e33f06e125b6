"""Bulk loads of undated articles: recognized by what the stream usually has, in their whole length."""

from __future__ import annotations

import msgspec

from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline
from aggregator.events.detection.bulk import (
    MAX_PER_MINUTE,
    MIN_PER_MINUTE,
    UndatedArticles,
    limit_per_minute,
)
from aggregator.time_units import HOUR_MS, MINUTE_MS

HOUR = 480_000
NOW_MS = HOUR * HOUR_MS


def baseline_of(documents_per_hour: int, hours: int = 8 * 24) -> Baseline:
    """A stream with so many documents in each of the last ``hours``."""
    baseline = Baseline(4 * HOUR_MS)
    for hour in range(HOUR - hours, HOUR + 1):
        for _ in range(documents_per_hour):
            baseline.add(hour, (ALL_DOCUMENTS,))
        baseline.refresh_totals(hour)
    return baseline


def ignored(undated: UndatedArticles, baseline: Baseline, minute: int, count: int) -> int:
    """How many of ``count`` articles in one minute are taken for a bulk load."""
    return sum(undated.is_bulk(NOW_MS + minute * MINUTE_MS, baseline) for _ in range(count))


def test_the_limit_is_what_a_whole_window_usually_has() -> None:
    """Without a day of history it is the largest limit; a small stream has the smallest."""
    assert 400 <= limit_per_minute(baseline_of(100), HOUR) <= 500
    assert limit_per_minute(baseline_of(10), HOUR) == MIN_PER_MINUTE
    assert limit_per_minute(baseline_of(1_000, hours=30), HOUR) == MAX_PER_MINUTE
    assert limit_per_minute(baseline_of(100, hours=5), HOUR) == MAX_PER_MINUTE


def test_a_load_is_ignored_until_a_minute_stays_below_the_limit() -> None:
    """Its first minute up to the limit counts, since nothing distinguishes it from a poll."""
    undated, baseline = UndatedArticles(), baseline_of(10)

    assert [
        ignored(undated, baseline, minute, count) for minute, count in enumerate((250, 900, 900, 90))
    ] == [
        0,
        600,
        900,
        90,
    ]
    assert undated.ignored == 1590
    assert ignored(undated, baseline, 4, 250) == 0
    assert undated.ignored == 0


def test_a_load_ends_with_a_minute_without_articles() -> None:
    """The next poll of the crawler counts."""
    undated, baseline = UndatedArticles(), baseline_of(10)
    assert ignored(undated, baseline, 0, 400) == 100

    assert ignored(undated, baseline, 2, 250) == 0


def test_a_state_saved_by_an_earlier_version_is_read() -> None:
    """It has the minute and the count only."""
    saved = msgspec.msgpack.encode((480, 7))

    assert msgspec.msgpack.decode(saved, type=UndatedArticles) == UndatedArticles(480, 7, ignored=0)
