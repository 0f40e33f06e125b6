"""Wall clock and times as text."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from aggregator.time_units import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    format_minute,
    format_rfc3339,
    wall_clock_ms,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# 0001-01-01 to 9999-12-31, all that a datetime can hold.
times_ms = st.integers(-62_135_596_800_000, 253_402_300_799_999)


def test_times_have_milliseconds() -> None:
    """Times therefore compare as text."""
    assert format_rfc3339(0) == "1970-01-01T00:00:00.000Z"
    assert format_rfc3339(1_300_000_000_007) == "2011-03-13T07:06:40.007Z"


@given(times_ms)
def test_a_formatted_time_is_parsed_to_the_same_millisecond(at_ms: int) -> None:
    """No time is rounded, also not one before 1970."""
    assert datetime.fromisoformat(format_rfc3339(at_ms)) - EPOCH == timedelta(milliseconds=at_ms)


@given(times_ms, times_ms)
def test_texts_sort_as_their_times(a_ms: int, b_ms: int) -> None:
    """Every text has the same length and offset, so its order is that of the times."""
    assert (format_rfc3339(a_ms) < format_rfc3339(b_ms)) is (a_ms < b_ms)


@given(times_ms)
def test_a_minute_is_the_beginning_of_the_full_time(at_ms: int) -> None:
    """The same minute, rounded down, without the letters."""
    assert format_minute(at_ms) == format_rfc3339(at_ms)[:16].replace("T", " ")


def test_units_are_those_of_timedelta() -> None:
    """Each unit is the number of milliseconds in it."""
    assert [timedelta(milliseconds=unit) for unit in (SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS)] == [
        timedelta(seconds=1),
        timedelta(minutes=1),
        timedelta(hours=1),
        timedelta(days=1),
    ]


def test_the_wall_clock_counts_whole_milliseconds_since_1970() -> None:
    """Its reading lies between two of the operating system's clock."""
    before_ns = time.time_ns()
    now_ms = wall_clock_ms()

    assert isinstance(now_ms, int)
    assert before_ns // 1_000_000 <= now_ms <= time.time_ns() // 1_000_000
