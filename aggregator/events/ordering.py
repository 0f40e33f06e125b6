"""Orders of a list of events, and the keys of their pages. Pure.

    time      last item, newest first
    novelty   detection, newest first
    size      most items first
    surprise  rank (``ranking.py``): unusual and recent first
    growth    most items per hour more than in the hour before (``severity.py``)

The first three are orders of the index of events, so a list continues after a page key. The other two
change with the time of day: they order open events and have no page keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from aggregator.events import severity
from aggregator.events.event import Event
from aggregator.events.ranking import rank

EventOrder = Literal["time", "novelty", "size", "surprise", "growth"]
PAGED_ORDERS: tuple[EventOrder, ...] = ("time", "novelty", "size")

# Sort key of an event in a paged order: a number, a time that decides between equal ones (ms), the id.
PageKey = tuple[int, int, str]


class Ordered(Protocol):
    """What the paged orders read of an event or of its entry in the index."""

    @property
    def detected_at_ms(self) -> int:
        """Time of detection."""

    @property
    def last_seen_ms(self) -> int:
        """Time of the last item."""

    @property
    def size(self) -> int:
        """Number of items."""


def page_key(entry: Ordered, event_id: str, order: EventOrder = "time") -> PageKey:
    """Sort key of an event, larger first. Raises ValueError for an order without page keys."""
    match order:
        case "time":
            return entry.last_seen_ms, entry.detected_at_ms, event_id
        case "novelty":
            return entry.detected_at_ms, entry.last_seen_ms, event_id
        case "size":
            return entry.size, entry.last_seen_ms, event_id
        case _:
            raise ValueError(f"The order {order} has no page keys.")


def page_key_of(event: Event, order: EventOrder = "time") -> PageKey:
    """Sort key of an event in the list."""
    return page_key(event, event.id, order)


def sort_events(events: Iterable[Event], order: EventOrder, now_ms: int) -> list[Event]:
    """The events in an order at ``now_ms``; equal ones by detection, the newest first."""
    return sorted(events, key=lambda e: (_number(e, order, now_ms), e.detected_at_ms, e.id), reverse=True)


def _number(event: Event, order: EventOrder, now_ms: int) -> float:
    match order:
        case "surprise":
            return rank(event, now_ms)
        case "growth":
            return severity.growth(event, now_ms).gained
        case _:
            return page_key_of(event, order)[0]
