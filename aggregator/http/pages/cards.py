"""Event cards of the front page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aggregator.events.detection.model import Event
from aggregator.events.ranking import sort_by_rank
from aggregator.http.pages import charts

SPARKLINE_WIDTH, SPARKLINE_HEIGHT = 144, 30
# Title of an event with neither headline (its article was deleted) nor terms.
NO_HEADLINE = "(no headline)"


@dataclass(frozen=True, slots=True)
class Card:
    """An event as shown in a list."""

    event: Event
    title: str
    sparkline: tuple[charts.Bar, ...]
    usual_rate: str

    @property
    def lang(self) -> str:
        """Probable language of the headline; "" when the event has several languages."""
        return self.event.languages[0] if len(self.event.languages) == 1 else ""


@dataclass(frozen=True, slots=True)
class EventLists:
    """The sections of the front page, each in order of rank."""

    open: tuple[Card, ...]
    muted: tuple[Card, ...]
    closed: tuple[Card, ...]


def make_card(event: Event, now_ms: int) -> Card:
    """The card of an event at ``now_ms``."""
    until_ms = event.last_seen_ms if event.status == "closed" else max(now_ms, event.last_seen_ms)
    return Card(
        event=event,
        title=title_of(event),
        sparkline=charts.sparkline(event.timeline, until_ms, SPARKLINE_WIDTH, SPARKLINE_HEIGHT),
        usual_rate=usual_rate(event),
    )


def event_lists(events: Sequence[Event], now_ms: int) -> EventLists:
    """The events as open, muted and closed cards; events merged into others are omitted."""
    cards = [make_card(e, now_ms) for e in sort_by_rank(events, now_ms) if e.merged_into is None]
    return EventLists(
        open=tuple(c for c in cards if c.event.status != "closed" and not is_muted(c.event)),
        muted=tuple(c for c in cards if is_muted(c.event)),
        closed=tuple(c for c in cards if c.event.status == "closed" and not is_muted(c.event)),
    )


def is_muted(event: Event) -> bool:
    """Whether editors muted the event or marked it as a false alarm."""
    return event.muted is not None or event.false_alarm


def title_of(event: Event) -> str:
    """The headline, or the terms of an event without one."""
    return event.title or ", ".join(event.terms) or NO_HEADLINE


def usual_rate(event: Event) -> str:
    """The busiest window relative to the usual one, for example "40× usual"."""
    if event.expected < 0.05:
        return "usually none"
    ratio = event.peak / event.expected
    return f"{ratio:.0f}× usual" if ratio >= 10 else f"{ratio:.1f}× usual"
