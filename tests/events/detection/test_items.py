"""Conversion of stream items: which of them count, and at what time."""

from __future__ import annotations

import pytest

from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS
from tests.support.detector_stream import START_MS, DetectorStream


@pytest.mark.parametrize(("age_h", "fires"), [(4.0, True), (4.001, False)])
def test_items_published_long_before_arrival_never_fire(age_h: float, fires: bool) -> None:
    """Published exactly 4 h before arrival still counts."""
    stream = DetectorStream()

    for i in range(20):
        at_ms = START_MS + i * MINUTE_MS
        stream.send(i, published_at_ms=at_ms - round(age_h * HOUR_MS))

    assert bool(stream.fired) is fires


def test_items_with_a_future_date_or_none_count_at_arrival() -> None:
    """Every second item is dated nine days ahead."""
    stream = DetectorStream()

    for i in range(16):
        stream.send(i, published_at_ms=START_MS + 9 * DAY_MS if i % 2 else None)

    assert len(stream.fired) == 1
