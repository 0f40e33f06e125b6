"""Bulk work beside single articles: small pieces, one at a time, pauses in proportion."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.ingest.throttle import (
    MAX_PAUSE_S,
    PAUSE_RATIO,
    QUIET_AFTER_S,
    SLICE_ARTICLES,
    BulkThrottle,
    pause_s,
)


class Given:
    """What the pace asks: when the newest single article came, what time it is; a pause passes at once."""

    def __init__(self, since_s: float) -> None:
        self.since, self.now_s, self.gave_way = since_s, 0.0, 0

    async def since_s(self) -> float:
        """As told."""
        return self.since

    def clock_s(self) -> float:
        """Stands still but for pauses and what a test adds."""
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """Time passes."""
        self.now_s += seconds

    async def give_way(self) -> None:
        """Counted."""
        self.gave_way += 1
        await asyncio.sleep(0)


def pace(told: Given) -> BulkThrottle:
    """The pace of a process that is told this."""
    return BulkThrottle(told, told.give_way, clock_s=told.clock_s, sleep=told.sleep)


def test_the_pause_is_longest_just_after_a_single_article() -> None:
    """As long as the work times GIVES at once, half of it half way, none when it is calm, never beyond LONGEST_S."""
    assert pause_s(0.0, 0.02) == pytest.approx(PAUSE_RATIO * 0.02)
    assert pause_s(QUIET_AFTER_S / 2, 0.02) == pytest.approx(PAUSE_RATIO * 0.01)
    assert pause_s(QUIET_AFTER_S, 0.02) == pause_s(math.inf, 0.02) == 0.0
    assert pause_s(0.0, 60.0) == MAX_PAUSE_S


@given(st.floats(0, 1e6), st.floats(0, 60))
def test_a_load_keeps_its_share(since_s: float, took_s: float) -> None:
    """Whatever arrives: of all time at least 1 in 1 + GIVES is the load's."""
    assert 0.0 <= pause_s(since_s, took_s) <= PAUSE_RATIO * took_s


async def test_without_single_articles_everything_is_taken_at_once() -> None:
    """As much as is there, any number of loads side by side, without a pause."""
    told = Given(math.inf)
    one = pace(told)

    async with one.slice(500) as first, one.slice(70, slice_articles=16) as second:
        assert (first, second) == (500, 70)
    assert (told.now_s, one.throttled_s, told.gave_way) == (0.0, 0.0, 0)


async def test_beside_single_articles_pieces_are_small_and_apart() -> None:
    """The first begins at once; between two lies what the one before it took times GIVES."""
    told = Given(0.0)
    one, began = pace(told), []

    for articles in (500, 500, 3):
        async with one.slice(articles) as count:
            began.append((told.now_s, count))
            told.now_s += 0.01

    apart = 0.01 + PAUSE_RATIO * 0.01
    assert began == [
        (0.0, SLICE_ARTICLES),
        (pytest.approx(apart), SLICE_ARTICLES),
        (pytest.approx(2 * apart), 3),
    ]
    assert one.throttled_s == pytest.approx(2 * PAUSE_RATIO * 0.01)
    assert told.gave_way == 3


async def test_time_that_passed_by_itself_is_no_pause() -> None:
    """A load that has waited for its input already goes on at once."""
    told = Given(0.0)
    one = pace(told)
    async with one.slice(500):
        told.now_s += 0.01
    told.now_s += 1.0
    async with one.slice(500):
        pass

    assert one.throttled_s == 0.0


async def test_all_loads_of_a_process_take_turns() -> None:
    """Never two pieces at once, and one that fails does not hold up the others."""
    one, under_way, most = pace(Given(0.0)), 0, 0

    async def load(fails: bool) -> None:
        nonlocal under_way, most
        async with one.slice(500):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1
            if fails:
                raise ValueError

    ended = await asyncio.gather(*(load(n == 1) for n in range(4)), return_exceptions=True)

    assert most == 1
    assert [type(e) for e in ended] == [type(None), ValueError, type(None), type(None)]
