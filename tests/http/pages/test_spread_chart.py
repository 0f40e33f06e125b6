"""Spread chart of an event."""

from __future__ import annotations

from aggregator.http.event_items import EventItem
from aggregator.http.pages.spread_chart import (
    MAX_NAMED_SOURCES,
    MIN_SPAN_MS,
    WIDTH,
    SpreadChart,
    spread_chart,
)
from aggregator.time_units import HOUR_MS, MINUTE_MS
from tests.support.factories import EVENT_MS, event

START_MS = EVENT_MS // HOUR_MS * HOUR_MS


def chart(*counts: int, sources: tuple[str, ...] = (), now_ms: int = 0) -> SpreadChart:
    """The chart of an event with these items per 10 minutes from START_MS; ``sources``: in the first bar."""
    timeline = tuple((START_MS + n * 10 * MINUTE_MS, count) for n, count in enumerate(counts) if count)
    last_ms = timeline[-1][0]
    items = [EventItem(str(n), "", "", s, "", None, 0, START_MS + n, 1.0) for n, s in enumerate(sources)]
    found = event("e1", "Storm", (), timeline=timeline, first_seen_ms=START_MS, last_seen_ms=last_ms)
    return spread_chart(found, items, now_ms or last_ms)


def test_a_bar_has_its_count_the_total_and_its_sources() -> None:
    """Each source once; bars without stored articles name none."""
    first, second = chart(3, 0, 5, sources=("Quay", "Pier", "Quay", "")).bins

    assert (first.items, first.total, first.sources, first.more_sources) == (3, 3, ("Quay", "Pier"), 0)
    assert (second.items, second.total, second.sources) == (5, 8, ())
    assert second.from_ms == START_MS + 20 * MINUTE_MS


def test_many_sources_are_counted() -> None:
    """The first ones are named."""
    (bin_,) = chart(20, sources=tuple(f"s{n}" for n in range(20))).bins

    assert (len(bin_.sources), bin_.more_sources) == (MAX_NAMED_SOURCES, 20 - MAX_NAMED_SOURCES)


def test_a_single_bar_is_narrow() -> None:
    """A chart of a new event is as long as one of an older event, and ends now."""
    shown = chart(25)
    (bar,) = shown.bars.bars

    assert shown.bars.to_ms - shown.bars.from_ms >= MIN_SPAN_MS
    assert bar.width < WIDTH / 15
    assert bar.x > WIDTH / 2


def test_growth_compares_the_last_hour_with_the_one_before() -> None:
    """Up to now while the event is open."""
    shown = chart(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    quiet = chart(5, 5, now_ms=START_MS + 3 * HOUR_MS)

    assert (shown.last_hour, shown.hour_before) == (7 + 8 + 9 + 10 + 11 + 12, 1 + 2 + 3 + 4 + 5 + 6)
    assert (quiet.last_hour, quiet.hour_before) == (0, 10)


def test_the_total_rises_to_the_top() -> None:
    """The line ends at the right edge, at the height of all items."""
    shown = chart(2, 0, 6)
    points = [tuple(map(float, point.split(","))) for point in shown.total_points.split()]

    assert shown.total == 8
    assert points[0] == (0.0, 56.0) and points[-1] == (float(WIDTH), 0.0)
    assert points == sorted(points, key=lambda p: (p[0], -p[1]))
