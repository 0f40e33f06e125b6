"""The time that an article is ordered by."""

import pytest

from aggregator.provenance.publication import publication_time
from aggregator.time_units import DAY_MS, HOUR_MS

MIDNIGHT = 20_000 * DAY_MS
NOON = MIDNIGHT + 12 * HOUR_MS


@pytest.mark.parametrize(
    ("published", "arrived", "expected"),
    [
        (NOON - 5, NOON, (NOON - 5, "published")),
        (NOON, NOON, (NOON, "published")),
        (None, NOON, (NOON, "arrived")),
        (NOON + 1, NOON, (NOON, "arrived")),  # a clock that is ahead
        (MIDNIGHT, NOON, (NOON, "arrived")),  # a day without a time, which arrived on that day
        (MIDNIGHT, NOON + DAY_MS, (MIDNIGHT, "day")),
        (MIDNIGHT + 1, NOON, (MIDNIGHT + 1, "published")),
    ],
)
def test_the_arrival_replaces_a_time_that_is_missing_or_impossible(
    published: int | None, arrived: int, expected: tuple[int, str]
) -> None:
    """A future time and a bare day say less than the arrival."""
    assert publication_time(published, arrived) == expected
