"""Outlets and times of a pair of articles."""

from __future__ import annotations

import pytest

from aggregator.dedup.evidence import Arrival, hours_between, is_same_outlet
from aggregator.time_units import HOUR_MS


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("Harbour Gazette", "harbour gazette", True),
        ("Gazette", "Radio", False),
        ("", "", False),
        ("Gazette", "", False),
    ],
)
def test_same_outlet(a: str, b: str, same: bool) -> None:
    """Two unknown sources are not one outlet."""
    assert is_same_outlet(Arrival(a, None, 0), Arrival(b, None, 0)) is same


def test_publications_count_before_arrivals() -> None:
    """Arrival times replace missing publication times; without either the time is unknown."""
    dated = Arrival("Gazette", 10 * HOUR_MS, 0), Arrival("Gazette", 4 * HOUR_MS, 0)
    undated = Arrival("Gazette", None, 0)

    assert hours_between(*dated, 0, 100 * HOUR_MS) == 6
    assert hours_between(dated[0], undated, 3 * HOUR_MS, 5 * HOUR_MS) == 2
    assert hours_between(dated[0], undated, None, 5 * HOUR_MS) is None
