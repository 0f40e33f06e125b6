"""Sizes of the bursts of the last week."""

from __future__ import annotations

from aggregator.events.detection.bursts import Bursts
from aggregator.time_units import DAY_MS, HOUR_MS


def test_a_burst_has_the_most_that_was_told_of_it() -> None:
    """A cluster is one burst; its final peak is set when it ends."""
    memory = Bursts()
    memory.record(1, 16, "en", 0)
    memory.record(2, 20, "en", HOUR_MS)
    memory.record(3, 30, "de", HOUR_MS)
    memory.record(1, 12, "en", 2 * HOUR_MS)
    assert memory.peaks("en", 0) == [20, 16]
    assert memory.peaks("en", HOUR_MS) == [20]

    memory.record(1, 18, "en", 3 * HOUR_MS)
    memory.raise_peak(1, 40)
    memory.raise_peak(9, 50)  # had no burst
    assert memory.peaks("en", 0) == [40, 20]


def test_bursts_are_forgotten_after_a_week() -> None:
    memory = Bursts()
    for day in range(9):
        memory.record(day, 16 + day, "en", day * DAY_MS)
    assert memory.peaks("en", 0) == list(range(24, 16, -1))
