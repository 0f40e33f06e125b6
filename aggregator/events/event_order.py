"""Severity, rank and order of events, all of them of the display: none decides whether an event fires. Pure.

**Severity**: how fast outlets report now, in one word. The first condition that holds decides:

    ended      the detector closed the event: no item within the window of the rule
    fading     the detector calls it fading (at most half its peak in the window), or no item for 1 h
    emerging   detected less than 1 h ago, with fewer than 30 items
    growing    at least 10 items in the last hour, and at least twice as many as in the hour before
    breaking   any other open event

**Rank** on the front page: the ratio of the busiest window to the usual one, in doublings; it halves with
every two hours without a new item, and with every twelve hours since detection.

**Orders**: time (last item), novelty (detection), size, surprise (rank), growth (items per hour more than in
the hour before). The first three are orders of the index of events, so a list continues after a page key. The
other two change with the time of day: they order open events and have no page keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp2, inf, log2
from typing import Literal, get_args

from aggregator.events.event import Event, EventSummary
from aggregator.time_units import HOUR_MS

Severity = Literal["emerging", "breaking", "growing", "fading", "ended"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

EMERGING_MS = HOUR_MS
EMERGING_ITEMS = 30
GROWING_ITEMS = 10
GROWING_RATIO = 2
QUIET_MS = HOUR_MS
QUIET_HALF_LIFE_HOURS = 2.0
AGE_HALF_LIFE_HOURS = 12.0
EventOrder = Literal["time", "novelty", "size", "surprise", "growth"]
PAGED_ORDERS: tuple[EventOrder, ...] = ("time", "novelty", "size")
# Sort key of an event in a paged order: a number, a time that decides between equal ones (ms), the id.
PageKey = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Growth:
    """Items of the timeline in the last hour and in the hour before, counted by buckets of 10 minutes."""

    last_hour: int
    hour_before: int

    @property
    def gained(self) -> int:
        """Items per hour more than in the hour before; negative when fewer arrive."""
        return self.last_hour - self.hour_before


def growth(event: Event, now_ms: int) -> Growth:
    """Items in the two hours before ``now_ms``; a bucket counts at its start, later ones as the last hour."""
    last_hour = event.items_between(now_ms - HOUR_MS, inf)
    return Growth(last_hour, event.items_between(now_ms - 2 * HOUR_MS, now_ms - HOUR_MS))


def severity(event: Event, now_ms: int) -> Severity:
    """The severity at ``now_ms``; see the module."""
    if event.status == "closed":
        return "ended"
    if event.status == "fading" or now_ms - event.last_seen_ms >= QUIET_MS:
        return "fading"
    if now_ms - event.detected_at_ms < EMERGING_MS and event.size < EMERGING_ITEMS:
        return "emerging"
    rates = growth(event, now_ms)
    if rates.last_hour >= GROWING_ITEMS and rates.last_hour >= GROWING_RATIO * rates.hour_before:
        return "growing"
    return "breaking"


def surprise(event: Event) -> float:
    """log2 of the busiest window over the usual one; negative only when it was quieter than usual."""
    return log2((event.peak + 1) / (event.expected + 1))


def rank(event: Event, now_ms: int) -> float:
    """Weight of an event at ``now_ms``, larger first; later times count as ``now_ms``."""
    quiet_hours = max(0, now_ms - event.last_seen_ms) / HOUR_MS
    age_hours = max(0, now_ms - event.detected_at_ms) / HOUR_MS
    halvings = quiet_hours / QUIET_HALF_LIFE_HOURS + age_hours / AGE_HALF_LIFE_HOURS
    return surprise(event) * exp2(-halvings)


def page_key(entry: Event | EventSummary, event_id: str, order: EventOrder = "time") -> PageKey:
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
            return growth(event, now_ms).gained
        case _:
            return page_key_of(event, order)[0]
