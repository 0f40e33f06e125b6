"""Figures of the health page."""

from __future__ import annotations

from aggregator.events.detection.model import LearnedHistory
from aggregator.http.pages.health import arrival_rate, known_documents
from aggregator.index.article_stream import Arrivals
from aggregator.time_units import HOUR_MS, MINUTE_MS

NOW_MS = 500_000 * HOUR_MS + 30 * MINUTE_MS


def test_the_rate_is_that_of_the_last_minutes() -> None:
    """More than 5,000 articles an hour included; the hour has 60 bars at most."""
    minutes = tuple((NOW_MS - n * MINUTE_MS, 600) for n in range(59, -1, -1))
    chart, per_minute = arrival_rate(
        Arrivals(minutes, {"new": 36_000}, is_complete=True), NOW_MS + MINUTE_MS - 1
    )

    assert round(per_minute) == 600
    assert len(chart.bars) == 60 and chart.largest == 600


def test_no_articles_have_no_rate() -> None:
    """An empty chart."""
    chart, per_minute = arrival_rate(Arrivals((), {}, is_complete=True), NOW_MS)

    assert (per_minute, chart.bars) == (0.0, ())


def test_what_the_detector_knows_is_shown_by_hour() -> None:
    """Of the last seven days; nothing before the first document."""
    hour = NOW_MS // HOUR_MS
    chart = known_documents(LearnedHistory(hour - 300, {hour: 4, hour - 100: 9, hour - 200: 99}), NOW_MS)

    assert chart is not None
    assert [bar.value for bar in chart.bars] == [9, 4]
    assert known_documents(LearnedHistory(None, {}), NOW_MS) is None
    assert known_documents(None, NOW_MS) is None
