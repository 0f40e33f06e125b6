"""Geometry of the charts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aggregator.http.handlers.event_views import EventItem
from aggregator.http.pages.cards import (
    BIN_MS,
    MAX_BINS,
    WIDTH,
    SpreadChart,
    bars,
    count_per_bin,
    sparkline,
    spread_chart,
    timeline_chart,
)
from aggregator.time_units import HOUR_MS, MINUTE_MS
from tests.support.factories import EVENT_MS, event

START_MS = 500_000 * HOUR_MS
timelines = st.dictionaries(st.integers(0, 5000), st.integers(1, 500), max_size=30).map(
    lambda counts: [(START_MS + bin_ * BIN_MS, n) for bin_, n in sorted(counts.items())]
)
START_MS = EVENT_MS // HOUR_MS * HOUR_MS


def test_empty_bins_count_zero() -> None:
    """Items outside the interval are ignored."""
    timeline = [(START_MS - BIN_MS, 9), (START_MS, 3), (START_MS + 2 * BIN_MS, 1)]

    assert count_per_bin(timeline, START_MS, START_MS + 2 * BIN_MS + 5, BIN_MS) == [
        (START_MS, 3),
        (START_MS + BIN_MS, 0),
        (START_MS + 2 * BIN_MS, 1),
    ]


def test_the_largest_bar_has_the_full_height() -> None:
    """Others are in proportion, each within its step; the smallest has a minimum height."""
    drawn = bars([(START_MS, 4), (START_MS + 1, 2), (START_MS + 2, 0), (START_MS + 3, 1)], 40, 20)

    assert [bar.height for bar in drawn] == [20, 10, 0, 5]
    assert [bar.x for bar in drawn] == [0, 10, 20, 30]
    assert bars([(START_MS, 1000), (START_MS + 1, 1)], 10, 20)[1].height == 1.5
    assert bars([], 10, 20) == ()


def test_a_sparkline_shows_the_last_four_hours() -> None:
    """24 bins of 10 minutes; empty ones have no bar."""
    drawn = sparkline([(START_MS - 4 * HOUR_MS, 7), (START_MS - BIN_MS, 2), (START_MS, 1)], START_MS + 5)

    assert [(bar.x, bar.value) for bar in drawn] == [(132.0, 2), (138.0, 1)]


def test_axes_have_round_ticks() -> None:
    """Times at full half hours, counts at 1, 2 or 5 times a power of ten."""
    chart = timeline_chart([(START_MS, 13)], START_MS - HOUR_MS, START_MS + 2 * HOUR_MS)

    assert {tick.at_ms % (HOUR_MS // 2) for tick in chart.time_ticks} == {0}
    assert [tick.value for tick in chart.count_ticks] == [5, 10]


@given(timelines)
def test_any_timeline_fits_its_chart(timeline: list[tuple[int, int]]) -> None:
    """Of any length, also empty: all bars are inside, no item is lost, bars and ticks are limited."""
    end_ms = max((at for at, _ in timeline), default=START_MS)
    chart = timeline_chart(timeline, START_MS, end_ms)

    assert sum(bar.value for bar in chart.bars) == sum(n for _, n in timeline)
    assert len(chart.bars) <= MAX_BINS
    assert len(chart.count_ticks) <= 4
    assert len(chart.time_ticks) <= 9
    for bar in chart.bars:
        assert bar.x >= 0
        assert bar.x + bar.width <= 960.01
        assert bar.y >= 0
        assert bar.y + bar.height <= 150.01


def chart(*counts: int, sources: tuple[str, ...] = (), now_ms: int = 0) -> SpreadChart:
    """The chart of an event with these items per 10 minutes from START_MS; ``sources``: in the first bar."""
    timeline = tuple((START_MS + n * 10 * MINUTE_MS, count) for n, count in enumerate(counts) if count)
    last_ms = timeline[-1][0]
    items = [EventItem(str(n), "", "", s, "", None, 0, START_MS + n) for n, s in enumerate(sources)]
    times = tuple(at_ms for at_ms, count in timeline for _ in range(count))
    seen = {"first_seen_ms": START_MS, "last_seen_ms": last_ms}
    found = event("e1", "Storm", (), timeline=timeline, times=times, **seen)
    return spread_chart(found, items, now_ms or last_ms)


def test_a_bar_has_its_count_the_total_and_its_sources() -> None:
    """Each source once; bars without stored articles name none."""
    first, second = chart(3, 0, 5, sources=("Quay", "Pier", "Quay", "")).bins

    assert (first.bar.value, first.total, first.sources) == (3, 3, ("Quay", "Pier"))
    assert (second.bar.value, second.total, second.sources) == (5, 8, ())
    assert second.bar.at_ms == START_MS + 20 * MINUTE_MS


def test_a_bar_says_what_came_before_the_detection() -> None:
    """The bar of the detection has both; the others are of one kind."""
    at_ms = START_MS + 11 * MINUTE_MS
    times = (START_MS, at_ms - 1, at_ms, at_ms + 1, START_MS + 100 * MINUTE_MS)
    found = event(
        "e1", "Storm", (), detected_at_ms=at_ms, first_seen_ms=START_MS, last_seen_ms=times[-1], times=times
    )

    assert [(each.early, each.bar.value) for each in spread_chart(found, (), times[-1]).bins] == [
        (1, 1),
        (1, 3),
        (0, 1),
    ]


def test_a_single_bar_is_narrow() -> None:
    """A chart of a new event is an hour of minutes, and ends now."""
    shown = chart(25)
    (bar,) = shown.bars.bars

    assert (shown.bars.bin_ms, (shown.bars.to_ms - shown.bars.from_ms) // MINUTE_MS) == (MINUTE_MS, 61)
    assert bar.width < WIDTH / 15 and bar.x > WIDTH / 2
    assert chart(25, now_ms=START_MS + HOUR_MS).bars.bin_ms == 10 * MINUTE_MS


def test_the_total_rises_to_all_items() -> None:
    """From bar to bar."""
    shown = chart(2, 0, 6)

    assert [each.total for each in shown.bins] == [2, 8]
