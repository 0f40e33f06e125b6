"""Ranking of events on the front page: the more surprising and the more recent first. Pure.

    rank = log2((peak + 1) / (expected + 1)) * 0.5 ** (hours since last seen / 2 + hours since detected / 12)

The weight of an event is the ratio of its busiest window to the usual one, in doublings. It halves with every
two hours without a new item, and with every twelve hours since detection.
"""

from __future__ import annotations

from math import exp2, log2

from aggregator.events.event import Event
from aggregator.time_units import HOUR_MS

QUIET_HALF_LIFE_HOURS = 2.0
AGE_HALF_LIFE_HOURS = 12.0


def surprise(event: Event) -> float:
    """log2 of the busiest window over the usual one; negative only when it was quieter than usual."""
    return log2((event.peak + 1) / (event.expected + 1))


def rank(event: Event, now_ms: int) -> float:
    """Weight of an event at ``now_ms``, larger first; later times count as ``now_ms``."""
    quiet_hours = max(0, now_ms - event.last_seen_ms) / HOUR_MS
    age_hours = max(0, now_ms - event.detected_at_ms) / HOUR_MS
    halvings = quiet_hours / QUIET_HALF_LIFE_HOURS + age_hours / AGE_HALF_LIFE_HOURS
    return surprise(event) * exp2(-halvings)
