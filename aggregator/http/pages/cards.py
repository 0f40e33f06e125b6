"""Event cards of the front page, and the geometry of charts, which the templates draw as SVG. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from aggregator.analysis.source import is_own, own_outlets
from aggregator.events import selection
from aggregator.events.days import is_split_off
from aggregator.events.detection.numbers import course_of
from aggregator.events.event import Event, title_of
from aggregator.http.handlers.event_views import EventItem
from aggregator.time_units import HOUR_MS, MINUTE_MS

Timeline = Sequence[tuple[int, int]]  # (start of a bucket in ms, items in it)
BIN_MS = 10 * MINUTE_MS
SPARKLINE_BINS = 24
MAX_BINS = 288
WIDTH, HEIGHT = 960, 150
MIN_SPAN_MS = 3 * HOUR_MS  # in a shorter chart the one or two bars of a new event look like blocks


@dataclass(frozen=True, slots=True)
class Bar:
    """Rectangle of one bin, in chart units; ``value``: its items, ``at_ms``: its start."""

    x: float
    y: float
    width: float
    height: float
    value: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Axis tick: ``at_ms`` on the time axis, ``value`` on the count axis."""

    position: float
    at_ms: int = 0
    value: int = 0


@dataclass(frozen=True, slots=True)
class Chart:
    """Bar chart over time, with ticks for both axes."""

    bars: tuple[Bar, ...]
    time_ticks: tuple[Tick, ...]
    count_ticks: tuple[Tick, ...]
    largest: int
    from_ms: int
    to_ms: int
    bin_ms: int
    width: int = WIDTH


def count_per_bin(timeline: Timeline, from_ms: int, to_ms: int, bin_ms: int) -> list[tuple[int, int]]:
    """(start, items) of every bin between two times, empty ones too; other items are ignored."""
    totals = dict.fromkeys(range(from_ms // bin_ms, to_ms // bin_ms + 1), 0)
    for at_ms, items in dict(timeline).items():
        if at_ms // bin_ms in totals:
            totals[at_ms // bin_ms] += items
    return [(bin_ * bin_ms, items) for bin_, items in totals.items()]


def bars(values: Timeline, width: float, height: float, gap: float = 1.0) -> tuple[Bar, ...]:
    """One bar per value; the largest has the full height, and values above 0 are at least 1.5 high."""
    if not values:
        return ()
    step = width / len(values)
    largest = max(1, *(v for _, v in values))
    bar_width = round(max(1.0, step - gap), 2)
    heights = [max(1.5, height * value / largest) if value else 0.0 for _, value in values]
    return tuple(
        Bar(round(i * step, 2), round(height - tall, 2), bar_width, round(tall, 2), value, at_ms)
        for i, (tall, (at_ms, value)) in enumerate(zip(heights, values, strict=True))
    )


def sparkline(timeline: Timeline, until_ms: int) -> tuple[Bar, ...]:
    """Bars of the 4 hours before ``until_ms`` in bins of 10 minutes, without empty ones."""
    values = count_per_bin(timeline, until_ms - (SPARKLINE_BINS - 1) * BIN_MS, until_ms, BIN_MS)
    return tuple(b for b in bars(values, SPARKLINE_WIDTH, SPARKLINE_HEIGHT) if b.value)


def timeline_chart(timeline: Timeline, from_ms: int, to_ms: int, bin_ms: int = BIN_MS) -> Chart:
    """Chart of a whole timeline; ``bin_ms`` is doubled until there are at most MAX_BINS bins."""
    while (to_ms - from_ms) // bin_ms >= MAX_BINS:
        bin_ms *= 2
    values = count_per_bin(timeline, from_ms, to_ms, bin_ms)
    largest = max((v for _, v in values), default=0)
    start_ms, end_ms = values[0][0], values[-1][0] + bin_ms
    step = next(s * 10**e for e in range(9) for s in (1, 2, 5) if largest <= 4 * s * 10**e)
    return Chart(
        bars=tuple(b for b in bars(values, WIDTH, HEIGHT, min(2.0, WIDTH / len(values) / 4)) if b.value),
        time_ticks=tuple(
            Tick(round(WIDTH * (t - start_ms) / (end_ms - start_ms), 2), at_ms=t)
            for t in _round_times(start_ms, end_ms)
        ),
        count_ticks=tuple(
            Tick(round(HEIGHT - HEIGHT * v / max(1, largest), 2), value=v)
            for v in range(step, largest + 1, step)
        ),
        largest=largest,
        from_ms=start_ms,
        to_ms=end_ms,
        bin_ms=bin_ms,
    )


def _round_times(start_ms: int, end_ms: int) -> list[int]:
    steps = [m * MINUTE_MS for m in (5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080)]
    step = next((s for s in steps if (end_ms - start_ms) / s <= 8), steps[-1])
    return list(range(-(-start_ms // step) * step, end_ms, step))


@dataclass(frozen=True, slots=True)
class Bin:
    """A bar with its items before the detection, those until its end, and the sources of its own."""

    bar: Bar
    early: int
    total: int
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpreadChart:
    """New items per bin and until its end."""

    bars: Chart
    bins: tuple[Bin, ...]


def spread_chart(event: Event, items: Sequence[EventItem], now_ms: int) -> SpreadChart:
    """Chart of the event to at most 1 h after the last item; in the first hour with a bar a minute."""
    last_ms = event.last_seen_ms if event.status == "closed" else min(now_ms, event.last_seen_ms + HOUR_MS)
    to_ms = max(last_ms, event.last_seen_ms)
    times, from_ms, bin_ms = course_of(event), to_ms - HOUR_MS, MINUTE_MS
    if to_ms - (first_ms := min(times, default=to_ms)) >= HOUR_MS:  # it may be doubtful
        from_ms, bin_ms = min(first_ms - HOUR_MS // 2, to_ms - MIN_SPAN_MS), BIN_MS
    bars = timeline_chart([*Counter(times).items()], from_ms, to_ms, bin_ms)
    sources: dict[int, dict[str, None]] = {}
    at_ms = dict(zip(event.items, times, strict=False))
    early = Counter(t // bars.bin_ms * bars.bin_ms for t in times if t < event.detected_at_ms)
    for item in items:
        from_ms = at_ms.get(item.id, item.at_ms) // bars.bin_ms * bars.bin_ms
        if item.source:
            sources.setdefault(from_ms, {})[item.source] = None
    bins: list[Bin] = []
    for bar in bars.bars:
        total = bar.value + (bins[-1].total if bins else 0)
        bins.append(Bin(bar, early[bar.at_ms], total, tuple(sources.get(bar.at_ms, ()))))
    return SpreadChart(bars, tuple(bins))


SPARKLINE_WIDTH, SPARKLINE_HEIGHT = 144, 30
NEW_MS = 10 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Card:
    """An event in a list.

    ``is_ours``: whether one of the newsroom's outlets has published it, None if none is named.
    ``is_new``: detected or developed within 10 minutes.
    ``came_since``: since it was handled, or since the time of the list.
    """

    event: Event
    title: str
    sparkline: tuple[Bar, ...]
    severity: selection.Severity
    growth: selection.Growth
    is_ours: bool | None = None
    is_new: bool = False
    came_since: selection.CameSince = field(default_factory=selection.CameSince)

    @property
    def lang(self) -> str:
        """Probable language of the headline; "" when the event has several languages."""
        return self.event.languages[0] if len(self.event.languages) == 1 else ""


def make_card(event: Event, now_ms: int, since_ms: int | None = None) -> Card:
    """The card of an event at ``now_ms``, in a list of what came from ``since_ms`` on."""
    until_ms = event.last_seen_ms if event.status == "closed" else max(now_ms, event.last_seen_ms)
    return Card(
        event=event,
        title=title_of(event),
        sparkline=sparkline(event.timeline, until_ms),
        severity=selection.severity(event, now_ms),
        growth=selection.growth(event, now_ms),
        is_ours=any(map(is_own, event.sources)) if own_outlets() else None,
        is_new=now_ms - selection.news_ms(event) < NEW_MS and not is_split_off(event),
        came_since=(
            selection.since_handled(event) if since_ms is None else selection.came_since(event, since_ms - 1)
        ),
    )


def event_lists(
    events: Sequence[Event],
    now_ms: int,
    order: selection.EventOrder = "surprise",
    only_severity: selection.Severity | None = None,
    only_ours: bool | None = None,
) -> dict[str, list[Card]]:
    """The events as "open", "handled" and "closed" cards, in one order; merged ones are omitted."""
    shown = (e for e in events if e.merged_into is None)
    cards = [make_card(e, now_ms) for e in selection.sort_events(shown, order, now_ms)]
    cards = [c for c in cards if only_severity in (None, c.severity) and only_ours in (None, c.is_ours)]
    open_cards = [c for c in cards if c.event.status != "closed"]
    return {
        "open": [c for c in open_cards if not selection.is_handled(c.event)],
        "handled": [c for c in open_cards if selection.is_handled(c.event)],
        "closed": [c for c in cards if c.event.status == "closed"],
    }
