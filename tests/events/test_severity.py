"""Severity of events: one word from counts and rates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.severity import SEVERITIES, growth, severity
from aggregator.time_units import HOUR_MS, MINUTE_MS
from tests.support.factories import EVENT_MS, event

OLD = {"detected_at_ms": EVENT_MS - 3 * HOUR_MS, "size": 40}
HOUR_AGO = EVENT_MS - HOUR_MS


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "closed", **OLD}, "ended"),
        ({"status": "fading", **OLD}, "fading"),
        ({"last_seen_ms": EVENT_MS - HOUR_MS, **OLD}, "fading"),
        ({"last_seen_ms": EVENT_MS - HOUR_MS + 1, "timeline": (), **OLD}, "breaking"),
        ({"detected_at_ms": EVENT_MS - HOUR_MS + 1, "size": 29}, "emerging"),
        ({"detected_at_ms": EVENT_MS - HOUR_MS, "size": 29, "timeline": ()}, "breaking"),
        ({"detected_at_ms": EVENT_MS, "size": 30, "timeline": ((EVENT_MS, 30),)}, "growing"),
        ({"timeline": ((HOUR_AGO, 5), (EVENT_MS, 10)), **OLD}, "growing"),
        ({"timeline": ((HOUR_AGO, 6), (EVENT_MS, 11)), **OLD}, "breaking"),
        ({"timeline": ((EVENT_MS, 9),), **OLD}, "breaking"),
    ],
)
def test_each_threshold_from_both_sides(fields: dict[str, Any], expected: str) -> None:
    """One hour, 30 items, 10 items in an hour, twice the hour before."""
    assert severity(event("e1", "Bridge", **fields), EVENT_MS) == expected


def test_growth_counts_buckets_by_their_start() -> None:
    """A bucket of exactly an hour ago belongs to the hour before, one of two hours ago to neither."""
    timeline = (
        (EVENT_MS - 2 * HOUR_MS, 1),
        (EVENT_MS - 2 * HOUR_MS + 1, 2),
        (HOUR_AGO, 4),
        (HOUR_AGO + 1, 8),
    )
    rates = growth(event("e1", "Bridge", timeline=(*timeline, (EVENT_MS + MINUTE_MS, 16))), EVENT_MS)

    assert (rates.last_hour, rates.hour_before, rates.gained) == (24, 6, 18)


@given(
    st.sampled_from(["breaking", "fading", "closed"]),
    st.integers(0, 100),
    st.integers(-HOUR_MS, 9 * HOUR_MS),
    st.lists(st.tuples(st.integers(-9 * HOUR_MS, HOUR_MS), st.integers(1, 50)), max_size=9),
)
def test_every_event_has_one_severity(
    status: str, size: int, age_ms: int, offsets: list[tuple[int, int]]
) -> None:
    """Exactly the closed ones have ended, and a fading one is never called breaking."""
    some = replace(
        event("e1", "Bridge", status=status, size=size, detected_at_ms=EVENT_MS - age_ms),
        timeline=tuple((EVENT_MS + at, items) for at, items in offsets),
    )
    found = severity(some, EVENT_MS)

    assert found in SEVERITIES
    assert (found == "ended") == (status == "closed")
    assert status != "fading" or found == "fading"
