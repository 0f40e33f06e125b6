"""Which event comes first on the editors' page? The more surprising, and the fresher.

    rank = log2((peak + 1) / (expected + 1)) * 0.5 ** (hours since last seen / 2 + hours since detected / 12)

An event counts by how far its busiest window exceeds what is usual for it, in doublings; two quiet hours
halve that, and so do twelve hours on the page. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp2, log2

from aggregator.events.detection.model import Event
from aggregator.time_units import HOUR_MS

QUIET_HALF_LIFE_HOURS = 2.0
AGE_HALF_LIFE_HOURS = 12.0


def surprise(event: Event) -> float:
    """Doublings of the busiest window over the usual one, >= 0 unless it was quieter than usual."""
    return log2((event.peak + 1) / (event.expected + 1))


def rank(event: Event, now_ms: int) -> float:
    """Larger comes first; times ahead of ``now_ms`` count as now."""
    quiet_hours = max(0, now_ms - event.last_seen_ms) / HOUR_MS
    age_hours = max(0, now_ms - event.detected_at_ms) / HOUR_MS
    halvings = quiet_hours / QUIET_HALF_LIFE_HOURS + age_hours / AGE_HALF_LIFE_HOURS
    return surprise(event) * exp2(-halvings)


def sort_by_rank(events: Iterable[Event], now_ms: int) -> list[Event]:
    """The events, first things first; equal ones by detection, the newest first."""
    return sorted(events, key=lambda e: (-rank(e, now_ms), -e.detected_at_ms, e.id))
