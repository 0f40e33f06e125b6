"""Domain types: article numbers and groups."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import (
    LATE_MS,
    NO_PROBLEM,
    NO_SKETCH,
    NUMBER_RANDOM_BITS,
    Article,
    ArticleRecord,
    Match,
    Outcome,
    Problem,
    arrival_ms_of,
    article_number_at,
    date_problem,
    publication_time,
)
from aggregator.time_units import DAY_MS, HOUR_MS

times_ms = st.integers(0, 2**42 - 2)
MIDNIGHT = 20_000 * DAY_MS
NOON = MIDNIGHT + 12 * HOUR_MS
low_bits = st.integers(0, 2**NUMBER_RANDOM_BITS - 1)


@given(times_ms, low_bits)
def test_a_number_holds_its_arrival_time(at_ms: int, low: int) -> None:
    """The time is read back exactly, and the number fits 64 bits, until the year 2109."""
    number = article_number_at(at_ms, low)

    assert arrival_ms_of(number) == at_ms
    assert number < 2**64


@given(times_ms, low_bits, low_bits)
def test_numbers_increase_with_time(at_ms: int, low: int, next_low: int) -> None:
    """A number of the next millisecond is larger, whatever the low bits of both are."""
    assert article_number_at(at_ms, low) < article_number_at(at_ms + 1, next_low)


def test_the_group_of_an_article_is_that_of_its_match() -> None:
    """A copy of a copy is in the group of the original; an article without a match has its own group."""
    match = Match(
        id="copy",
        number=30,
        canonical_id="original",
        canonical_first=10,
        distance=1,
        overlap=0.9,
        rule="overlap",
    )

    assert Outcome("duplicate", 1, match).group(50) == 10
    assert Outcome("related", 6).group(50) == 50


def test_a_record_arrived_when_its_version_did() -> None:
    """The arrival time of an updated article is that of the update, not of the first version."""
    record = ArticleRecord(
        number=article_number_at(9_000, 5),
        first_version=article_number_at(4_000, 7),
        id="a",
        space="en.0000",
        lang="en",
        fingerprint=0,
        text_hash=bytes(16),
        short=False,
        title="Ferry aground",
        url="",
        source="",
        published_at_ms=None,
        sketch=NO_SKETCH,
    )

    assert record.arrived_ms == 9_000


@pytest.mark.parametrize(
    ("published", "arrived", "expected"),
    [
        (NOON - 5, NOON, (NOON - 5, "published")),
        (NOON, NOON, (NOON, "published")),
        (None, NOON, (NOON, "arrived")),
        (NOON + 1, NOON, (NOON, "arrived")),  # a clock that is ahead
        (MIDNIGHT, NOON, (NOON, "arrived")),  # a day without a time, which arrived on that day
        (
            MIDNIGHT,
            MIDNIGHT + 36 * HOUR_MS - 1,
            (MIDNIGHT + 36 * HOUR_MS - 1, "arrived"),
        ),
        (MIDNIGHT, MIDNIGHT + 36 * HOUR_MS, (MIDNIGHT, "day")),
        (MIDNIGHT + 1, NOON, (MIDNIGHT + 1, "published")),
    ],
)
def test_the_arrival_replaces_a_time_that_is_missing_or_impossible(
    published: int | None, arrived: int, expected: tuple[int, str]
) -> None:
    """A future time and a bare day say less than the arrival."""
    assert publication_time(published, arrived) == expected


@pytest.mark.parametrize(
    ("age_ms", "believed_ms", "basis"),
    [
        (LATE_MS, LATE_MS, "published"),
        (LATE_MS + 1, LATE_MS, "claimed"),
        (9 * HOUR_MS, 10 * HOUR_MS, "published"),
        (20 * DAY_MS, inf, "published"),
        (4 * DAY_MS - NOON % DAY_MS, LATE_MS, "claimed"),
    ],
)
def test_a_date_long_before_the_arrival_is_a_claim(age_ms: int, believed_ms: float, basis: str) -> None:
    """The arrival counts, unless the source is known for such dates, or what is past was declared."""
    at_ms, found = publication_time(NOON - age_ms, NOON, believed_ms)

    assert (found, at_ms) == (basis, NOON if basis == "claimed" else NOON - age_ms)


@pytest.mark.parametrize(
    ("published_ms", "backfill", "expected"),
    [
        (None, False, Problem.undated),
        (MIDNIGHT, False, Problem.no_time),
        (NOON - LATE_MS, False, NO_PROBLEM),
        (NOON - LATE_MS - 1, False, Problem.late),
        (NOON - LATE_MS - 1, True, NO_PROBLEM),
        (MIDNIGHT - 3 * DAY_MS, False, Problem.late | Problem.no_time),
        (NOON + HOUR_MS, False, NO_PROBLEM),
        (NOON + HOUR_MS + 1, False, Problem.future),
        (NOON + 150 * DAY_MS, True, Problem.future),
        (MIDNIGHT + DAY_MS, False, Problem.no_time),
        (MIDNIGHT + 2 * DAY_MS, False, Problem.no_time | Problem.future),
    ],
)
def test_problems_of_a_date(published_ms: int | None, backfill: bool, expected: Problem) -> None:
    """None, a day only, too old at the arrival, unless it is an archive, or after it."""
    article = Article("a", title="A", published_at_ms=published_ms, backfill=backfill)

    assert date_problem(article, NOON) == expected
