"""The trusted time and the judgement of a wall clock, over any sequence of clock readings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.index.trusted_time import (
    CATCH_UP_RATE,
    MAX_AHEAD_MS,
    MAX_STORE_DIFFERENCE_MS,
    TrustedTime,
    find_clock_problem,
    find_store_difference,
    max_behind_ms,
)
from aggregator.time_units import DAY_MS, HOUR_MS, SECOND_MS

NOW_MS = 1_780_000_000_000
PERIOD_MS = 90 * DAY_MS
STATE = TrustedTime(NOW_MS, NOW_MS)

offsets = st.one_of(
    st.integers(-400 * DAY_MS, 400 * DAY_MS),
    st.integers(-2 * HOUR_MS, 2 * HOUR_MS),
    st.just(0),
)
readings = st.lists(st.tuples(st.integers(0, 3 * DAY_MS), offsets), max_size=40)


@given(readings)
def test_it_passes_real_time_by_no_more_than_the_catch_up(steps: list[tuple[int, int]]) -> None:
    """Each step: real ms that pass, and by how much the clock is wrong then."""
    state, real_ms, allowance_ms = STATE, NOW_MS, 0
    for elapsed_ms, offset_ms in steps:
        real_ms += elapsed_ms
        wall_ms = real_ms + offset_ms
        if find_clock_problem(state, wall_ms, elapsed_ms, floor_ms=0, period_ms=PERIOD_MS) is None:
            before, state = state, state.advance(wall_ms, elapsed_ms)
            assert before.trusted_ms <= state.trusted_ms <= max(before.trusted_ms, wall_ms)
            allowance_ms += (CATCH_UP_RATE - 1) * elapsed_ms if offset_ms > 0 else 0

        assert state.trusted_ms <= real_ms + allowance_ms


@given(readings)
def test_it_never_passes_real_time_under_clocks_that_are_not_ahead(steps: list[tuple[int, int]]) -> None:
    """So no article expires before its period, whatever the clock said in between."""
    state, real_ms = STATE, NOW_MS
    for elapsed_ms, offset_ms in steps:
        real_ms += elapsed_ms
        state = state.advance(real_ms - abs(offset_ms), elapsed_ms)

        assert state.trusted_ms <= real_ms


def test_twenty_seconds_of_a_wrong_clock_cost_a_minute_more() -> None:
    """At 29 days ahead, which is plausible: nothing was off for longer."""
    state = STATE.advance(NOW_MS + 29 * DAY_MS, 20 * SECOND_MS)
    assert state.trusted_ms - NOW_MS == CATCH_UP_RATE * 20 * SECOND_MS

    again = state.advance(NOW_MS + 60 * SECOND_MS, 40 * SECOND_MS)
    assert again.trusted_ms == state.trusted_ms, "it waits for the clock"


def test_a_gap_is_made_up_three_times_as_fast() -> None:
    """After 30 days without power, within 10 days."""
    state, wall_ms, hours = STATE, NOW_MS + 30 * DAY_MS, 0
    while state.trusted_ms < wall_ms:
        hours, wall_ms = hours + 1, wall_ms + HOUR_MS
        state = state.advance(wall_ms, HOUR_MS)

    assert hours == 10 * 24


@pytest.mark.parametrize(
    ("offset_ms", "elapsed_ms", "period_ms", "words"),
    [
        (100 * DAY_MS, 0, PERIOD_MS, "100.0 days after this data was last in use"),
        (366 * DAY_MS, SECOND_MS, None, "after this data was last in use"),
        (-366 * DAY_MS, SECOND_MS, PERIOD_MS, "before the last use"),
        (-13 * HOUR_MS, 0, DAY_MS, "before the last use"),
        (MAX_AHEAD_MS, 0, PERIOD_MS, ""),
        (100 * DAY_MS, 70 * DAY_MS, PERIOD_MS, ""),
        (-2 * HOUR_MS, 0, DAY_MS, ""),
        (-29 * DAY_MS, 0, PERIOD_MS, ""),
        (3 * DAY_MS, 0, DAY_MS, ""),
    ],
    ids=[
        "100 days", "a year", "a year back", "13 hours back, kept for a day", "30 days",
        "suspended for 70 days", "2 hours back", "29 days back", "3 days, kept for a day",
    ],
)  # fmt: skip
def test_which_clocks_are_plausible(
    offset_ms: int, elapsed_ms: int, period_ms: int | None, words: str
) -> None:
    """The sentence names the clock, the difference and the repair."""
    problem = find_clock_problem(STATE, NOW_MS + offset_ms, elapsed_ms, floor_ms=0, period_ms=period_ms)

    assert (problem is None) == (words == "")
    if problem is not None:
        assert words in problem
        assert "aggregator clock --accept" in problem


def test_a_floor_that_new_articles_would_soon_fall_below_is_reported() -> None:
    """An earlier version raised it under a wrong clock; normally it is a period and a day behind."""
    normal_ms = NOW_MS - PERIOD_MS - DAY_MS
    for floor_ms, is_problem in ((normal_ms, False), (NOW_MS - 20 * DAY_MS, True), (NOW_MS + DAY_MS, True)):
        problem = find_clock_problem(STATE, NOW_MS, 0, floor_ms=floor_ms, period_ms=PERIOD_MS)
        assert (problem is not None) == is_problem
        assert problem is None or "count as expired" in problem


def test_the_clocks_of_machine_and_store_must_agree() -> None:
    """Time zones may differ; a day or more is one of them being wrong."""
    assert find_store_difference(NOW_MS, NOW_MS + MAX_STORE_DIFFERENCE_MS) is None
    assert "set the one that is wrong" in (find_store_difference(NOW_MS, NOW_MS - 2 * DAY_MS) or "")


def test_how_far_a_clock_may_be_behind() -> None:
    """Half of the retention period, 30 days at most."""
    assert [max_behind_ms(period) for period in (None, PERIOD_MS, DAY_MS)] == [
        30 * DAY_MS,
        30 * DAY_MS,
        12 * HOUR_MS,
    ]
