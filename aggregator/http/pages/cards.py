"""What an event looks like in a list. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aggregator.events.detection.model import Event
from aggregator.events.ranking import sort_by_rank
from aggregator.http.pages import charts

SPARKLINE_WIDTH, SPARKLINE_HEIGHT = 144, 30
# An event without a headline (its article was taken down) is called by its terms; without these, so:
NO_HEADLINE = "(no headline)"


@dataclass(frozen=True, slots=True)
class Card:
    """An event and what is drawn of it."""

    event: Event
    title: str
    sparkline: tuple[charts.Bar, ...]
    usual_rate: str

    @property
    def lang(self) -> str:
        """The language its headline is likely in, "" when there are several."""
        return self.event.languages[0] if len(self.event.languages) == 1 else ""


@dataclass(frozen=True, slots=True)
class EventLists:
    """The list in its parts, each ranked."""

    open: tuple[Card, ...]
    muted: tuple[Card, ...]
    closed: tuple[Card, ...]


def make_card(event: Event, now_ms: int) -> Card:
    """One event as it is shown at ``now_ms``."""
    until_ms = event.last_seen_ms if event.status == "closed" else max(now_ms, event.last_seen_ms)
    return Card(
        event=event,
        title=title_of(event),
        sparkline=charts.sparkline(event.timeline, until_ms, SPARKLINE_WIDTH, SPARKLINE_HEIGHT),
        usual_rate=usual_rate(event),
    )


def event_lists(events: Sequence[Event], now_ms: int) -> EventLists:
    """Events in their parts: what goes on, what was muted, what is over (merged ones are left out)."""
    cards = [make_card(e, now_ms) for e in sort_by_rank(events, now_ms) if e.merged_into is None]
    return EventLists(
        open=tuple(c for c in cards if c.event.status != "closed" and not is_muted(c.event)),
        muted=tuple(c for c in cards if is_muted(c.event)),
        closed=tuple(c for c in cards if c.event.status == "closed" and not is_muted(c.event)),
    )


def is_muted(event: Event) -> bool:
    """Whether editors want to hear no more of it."""
    return event.muted is not None or event.false_alarm


def title_of(event: Event) -> str:
    """What an event is called."""
    return event.title or ", ".join(event.terms) or NO_HEADLINE


def usual_rate(event: Event) -> str:
    """How its busiest window compares with the usual one, in two words."""
    if event.expected < 0.05:
        return "usually none"
    times = event.peak / event.expected
    return f"{times:.0f}× usual" if times >= 10 else f"{times:.1f}× usual"
