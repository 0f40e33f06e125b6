"""Known history: late documents extend it where they are dense enough."""

from __future__ import annotations

import pytest

from aggregator.events.detection.known_history import find_known_hour

FIRST = 1000


@pytest.mark.parametrize(
    ("late_per_hour", "expected"),
    [
        ({}, FIRST),
        ({1: 10, 2: 10}, FIRST - 48),  # two days like the present ones
        ({1: 3, 2: 3}, FIRST - 48),  # 0.3 of the present volume
        ({1: 2}, FIRST),  # what a feed lists when it is first read
        ({2: 30}, FIRST - 48),  # a pause between them
        ({5: 10}, FIRST),  # one day long ago
        ({1: 10, 8: 1}, FIRST - 24),  # and a few older ones
    ],
)
def test_late_days_are_known_where_they_are_dense(late_per_hour: dict[int, int], expected: int) -> None:
    """Ten documents an hour since the first one; late ones by number of days before it."""
    documents = dict.fromkeys(range(FIRST, FIRST + 24), 10)
    for day, per_hour in late_per_hour.items():
        documents |= dict.fromkeys(range(FIRST - 24 * day, FIRST - 24 * (day - 1)), per_hour)

    assert find_known_hour(documents, FIRST, 4) == expected


def test_without_a_live_document_the_late_ones_are_the_history() -> None:
    """As after ``aggregator learn`` and before the first article."""
    assert find_known_hour({}, None, 4) is None
    assert find_known_hour(dict.fromkeys(range(100, 148), 5), None, 4) == 100
