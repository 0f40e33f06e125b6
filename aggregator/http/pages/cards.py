"""What an event looks like in a list. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aggregator.events.detection.model import Event
from aggregator.events.ranking import ranked
from aggregator.http.pages import charts

SPARK_WIDTH, SPARK_HEIGHT = 144, 30
# An event without a headline (its article was taken down) is called by its terms; without these, so:
NAMELESS = "(no headline)"


@dataclass(frozen=True, slots=True)
class Card:
    """An event and what is drawn of it."""

    event: Event
    title: str
    spark: tuple[charts.Bar, ...]
    usually: str

    @property
    def lang(self) -> str:
        """The language its headline is likely in, "" when there are several."""
        return self.event.languages[0] if len(self.event.languages) == 1 else ""


@dataclass(frozen=True, slots=True)
class Board:
    """The list in its parts, each ranked."""

    open: tuple[Card, ...]
    muted: tuple[Card, ...]
    closed: tuple[Card, ...]


def card(event: Event, now_ms: int) -> Card:
    """One event as it is shown at ``now_ms``."""
    until_ms = event.last_seen_ms if event.status == "closed" else max(now_ms, event.last_seen_ms)
    return Card(
        event=event,
        title=title_of(event),
        spark=charts.sparkline(event.timeline, until_ms, SPARK_WIDTH, SPARK_HEIGHT),
        usually=usually(event),
    )


def board(events: Sequence[Event], now_ms: int) -> Board:
    """Events in their parts: what goes on, what was muted, what is over (merged ones are left out)."""
    cards = [card(e, now_ms) for e in ranked(events, now_ms) if e.merged_into is None]
    return Board(
        open=tuple(c for c in cards if c.event.status != "closed" and not is_muted(c.event)),
        muted=tuple(c for c in cards if is_muted(c.event)),
        closed=tuple(c for c in cards if c.event.status == "closed" and not is_muted(c.event)),
    )


def is_muted(event: Event) -> bool:
    """Whether editors want to hear no more of it."""
    return event.muted is not None or event.false_alarm


def title_of(event: Event) -> str:
    """What an event is called."""
    return event.title or ", ".join(event.terms) or NAMELESS


def usually(event: Event) -> str:
    """How its busiest window compares with the usual one, in two words."""
    if event.expected < 0.05:
        return "usually none"
    times = event.peak / event.expected
    return f"{times:.0f}× usual" if times >= 10 else f"{times:.1f}× usual"
