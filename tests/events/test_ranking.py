"""Ranking of events: the more surprising and the more recent first."""

from __future__ import annotations

from dataclasses import replace

from aggregator.events.ranking import rank, surprise
from aggregator.time_units import HOUR_MS
from tests.support.factories import EVENT_MS, event

BASE = replace(
    event("e", "Bridge closed"), peak=31, expected=0.0, detected_at_ms=EVENT_MS, last_seen_ms=EVENT_MS
)


def test_surprise_counts_doublings_over_the_usual() -> None:
    """31 items where none is usual are five doublings; the usual number is zero."""
    assert surprise(BASE) == 5.0
    assert surprise(replace(BASE, expected=31.0)) == 0.0
    assert surprise(replace(BASE, expected=15.0)) == 1.0


def test_the_rank_halves_with_quiet_hours_and_with_age() -> None:
    """Two hours without a new item, or twelve hours since detection."""
    assert rank(BASE, EVENT_MS) == 5.0
    assert rank(replace(BASE, last_seen_ms=EVENT_MS - 2 * HOUR_MS), EVENT_MS) == 2.5
    assert rank(replace(BASE, detected_at_ms=EVENT_MS - 12 * HOUR_MS), EVENT_MS) == 2.5
    assert rank(BASE, EVENT_MS - HOUR_MS) == 5.0
