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


@pytest.mark.parametrize(
    ("trial", "hours", "expected"),
    [
        ({30: 1}, 3, FIRST),  # one article the day before
        ({100: 1, 40: 2}, 3, FIRST),
        ({30: 1}, 1, FIRST - 30),  # ten articles are not much more than one
        ({10: 1}, 10, FIRST - 10),  # the same day
        (dict.fromkeys(range(48, 0, -1), 1), 24, FIRST - 48),  # a weekend
    ],
)
def test_a_trial_before_the_stream_is_no_history(trial: dict[int, int], hours: int, expected: int) -> None:
    """Live documents by number of hours before the stream, which has ten an hour (but sixty for a trial)."""
    per_hour = 60 if hours == 3 else 10
    documents = {FIRST - ago: count for ago, count in trial.items()}
    documents |= dict.fromkeys(range(FIRST, FIRST + hours), per_hour)

    assert find_known_hour(documents, min(documents), 4) == expected


def test_a_history_of_over_a_week_is_not_a_trial() -> None:
    """Its oldest day is dropped hour by hour, and has few documents at the end."""
    documents = {1000: 1} | dict.fromkeys(range(1001, 1160), 100)

    assert find_known_hour(documents, 10, 4) == 10
