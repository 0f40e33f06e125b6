"""Spread chart of an event: new items and items in total over time, with the sources of each bar. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aggregator.events.detection.model import Event
from aggregator.http.event_items import EventItem
from aggregator.http.pages import charts
from aggregator.time_units import HOUR_MS

WIDTH, HEIGHT, TOTAL_HEIGHT = 960, 150, 56
# A new event has one or two bars: in a shorter chart they would look like blocks.
MIN_SPAN_MS = 3 * HOUR_MS
MAX_NAMED_SOURCES = 8


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar. ``total``: items until its end; ``sources``: the first of them, ``more_sources`` others.

    x, width  of the area that a pointer hits, in chart units
    """

    from_ms: int
    items: int
    total: int
    sources: tuple[str, ...]
    more_sources: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class SpreadChart:
    """``bars``: new items per bin; ``total_points``: items in total, as the points of an SVG polyline.

    last_hour, hour_before  new items in the hour before the end of the chart, and in the one before that
    """

    bars: charts.Chart
    bins: tuple[Bin, ...]
    total_points: str
    total: int
    last_hour: int
    hour_before: int


def spread_chart(event: Event, items: Sequence[EventItem], now_ms: int) -> SpreadChart:
    """Chart of the event, at least ``MIN_SPAN_MS`` long.

    From 30 min before the first item to 1 h after the last, or to now if that is earlier. ``items``: the
    articles whose sources are named.
    """
    last_ms = event.last_seen_ms if event.status == "closed" else min(now_ms, event.last_seen_ms + HOUR_MS)
    to_ms = max(last_ms, event.last_seen_ms)
    from_ms = min(event.first_seen_ms - HOUR_MS // 2, to_ms - MIN_SPAN_MS)
    bars = charts.timeline_chart(event.timeline, from_ms, to_ms, WIDTH, HEIGHT)
    bins = _bins(bars, items)
    total = bins[-1].total if bins else 0
    return SpreadChart(
        bars=bars,
        bins=bins,
        total_points=_total_points(bins, total),
        total=total,
        last_hour=event.items_between(to_ms - HOUR_MS, to_ms),
        hour_before=event.items_between(to_ms - 2 * HOUR_MS, to_ms - HOUR_MS),
    )


def _bins(chart: charts.Chart, items: Sequence[EventItem]) -> tuple[Bin, ...]:
    sources: dict[int, dict[str, None]] = {}
    for item in items:
        if item.source:
            sources.setdefault(item.at_ms // chart.bin_ms * chart.bin_ms, {})[item.source] = None
    width = chart.width * chart.bin_ms / (chart.to_ms - chart.from_ms)
    found: list[Bin] = []
    for bar in chart.bars:
        names = tuple(sources.get(bar.at_ms, ()))
        found.append(
            Bin(
                from_ms=bar.at_ms,
                items=bar.value,
                total=bar.value + (found[-1].total if found else 0),
                sources=names[:MAX_NAMED_SOURCES],
                more_sources=len(names[MAX_NAMED_SOURCES:]),
                x=bar.x,
                width=round(width, 2),
            )
        )
    return tuple(found)


def _total_points(bins: Sequence[Bin], total: int) -> str:
    """Points of a line that rises in each bin, in chart units."""
    points: list[tuple[float, int]] = [(0.0, 0)]
    for bin_ in bins:
        points += [(bin_.x, points[-1][1]), (min(WIDTH, bin_.x + bin_.width), bin_.total)]
    points.append((float(WIDTH), points[-1][1]))
    return " ".join(f"{x:g},{TOTAL_HEIGHT - TOTAL_HEIGHT * value / max(1, total):.4g}" for x, value in points)
