"""Severity of an event in one word, from its counts and rates. Pure.

The first condition that holds decides:

    ended      the detector closed the event: no item within the window of the rule
    fading     the detector calls it fading (at most half its peak in the window), or no item for 1 h
    emerging   detected less than 1 h ago, with fewer than 30 items
    growing    at least 10 items in the last hour, and at least twice as many as in the hour before
    breaking   any other open event

The words say how fast outlets report now, not how important or true the event is. The thresholds are
constants of the display: they decide neither whether an event fires nor what a webhook sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

from aggregator.events.event import Event
from aggregator.time_units import HOUR_MS

Severity = Literal["emerging", "breaking", "growing", "fading", "ended"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

EMERGING_MS = HOUR_MS
EMERGING_ITEMS = 30
GROWING_ITEMS = 10
GROWING_RATIO = 2
QUIET_MS = HOUR_MS


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
