"""Event cards of the front page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aggregator.events.event import Event
from aggregator.events.event_order import EventOrder, Growth, Severity, growth, severity, sort_events
from aggregator.events.filter import OwnSources
from aggregator.events.formatting import title_of
from aggregator.http.pages import charts

SPARKLINE_WIDTH, SPARKLINE_HEIGHT = 144, 30
NO_OWN_SOURCES = OwnSources("")


@dataclass(frozen=True, slots=True)
class Card:
    """An event in a list. ``usual_y``: height of the usual number in the sparkline, if visible.

    ``is_ours``: whether one of the newsroom's own sources has published it, None if none is set.
    """

    event: Event
    title: str
    sparkline: tuple[charts.Bar, ...]
    usual_y: float | None
    usual_rate: str
    severity: Severity
    growth: Growth
    is_ours: bool | None = None

    @property
    def lang(self) -> str:
        """Probable language of the headline; "" when the event has several languages."""
        return self.event.languages[0] if len(self.event.languages) == 1 else ""


@dataclass(frozen=True, slots=True)
class EventLists:
    """The sections of the front page, each in the same order."""

    open: tuple[Card, ...]
    muted: tuple[Card, ...]
    closed: tuple[Card, ...]


def make_card(event: Event, now_ms: int, own_sources: OwnSources = NO_OWN_SOURCES) -> Card:
    """The card of an event at ``now_ms``."""
    until_ms = event.last_seen_ms if event.status == "closed" else max(now_ms, event.last_seen_ms)
    bars = charts.sparkline(event.timeline, until_ms, SPARKLINE_WIDTH, SPARKLINE_HEIGHT)
    return Card(
        event=event,
        title=title_of(event),
        sparkline=bars,
        usual_y=usual_y(event, bars),
        usual_rate=usual_rate(event),
        severity=severity(event, now_ms),
        growth=growth(event, now_ms),
        is_ours=own_sources.any_of(event.sources) if own_sources else None,
    )


def event_lists(
    events: Sequence[Event],
    now_ms: int,
    order: EventOrder = "surprise",
    only_severity: Severity | None = None,
    own_sources: OwnSources = NO_OWN_SOURCES,
    only_ours: bool | None = None,
) -> EventLists:
    """The events as open, muted and closed cards; events merged into others are omitted."""
    shown = (e for e in events if e.merged_into is None)
    cards = [make_card(e, now_ms, own_sources) for e in sort_events(shown, order, now_ms)]
    cards = [c for c in cards if only_severity in (None, c.severity) and only_ours in (None, c.is_ours)]
    return EventLists(
        open=tuple(c for c in cards if c.event.status != "closed" and not is_muted(c.event)),
        muted=tuple(c for c in cards if is_muted(c.event)),
        closed=tuple(c for c in cards if c.event.status == "closed" and not is_muted(c.event)),
    )


def is_muted(event: Event) -> bool:
    """Whether editors muted the event or marked it as a false alarm."""
    return event.muted is not None or event.false_alarm


def usual_y(event: Event, bars: Sequence[charts.Bar]) -> float | None:
    """Position of the expected number per bin above the axis; None below 1 unit or above all bars."""
    largest = max((bar.value for bar in bars), default=0)
    height = SPARKLINE_HEIGHT * event.expected / charts.SPARKLINE_BINS / largest if largest else 0.0
    return round(SPARKLINE_HEIGHT - height, 2) if 1 <= height <= SPARKLINE_HEIGHT else None


def usual_rate(event: Event) -> str:
    """The busiest window relative to the usual one, for example "40× usual"."""
    if event.expected < 0.05:
        return "usually none"
    ratio = event.peak / event.expected
    return f"{ratio:.0f}× usual" if ratio >= 10 else f"{ratio:.1f}× usual"
