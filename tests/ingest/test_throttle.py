"""Bulk throttle: small slices with proportional pauses while interactive articles arrive."""

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


class Environment:
    """Activity, clock and event loop of a throttle; sleeping advances the clock immediately."""

    def __init__(self, since_last_s: float) -> None:
        self.since_last_s, self.now_s, self.yields = since_last_s, 0.0, 0
        self.throttle = BulkThrottle(self, self.yield_control, clock_s=self.clock_s, sleep=self.sleep)

    async def seconds_since_last(self) -> float:
        """The constant given."""
        return self.since_last_s

    def clock_s(self) -> float:
        """Advances by sleeping, and when a test changes ``now_s``."""
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.now_s += seconds

    async def yield_control(self) -> None:
        """Counted."""
        self.yields += 1
        await asyncio.sleep(0)


def test_the_pause_is_longest_right_after_an_interactive_article() -> None:
    """PAUSE_RATIO times the work at first, half of it half-way, then 0; at most MAX_PAUSE_S."""
    assert pause_s(0.0, 0.02) == pytest.approx(PAUSE_RATIO * 0.02)
    assert pause_s(QUIET_AFTER_S / 2, 0.02) == pytest.approx(PAUSE_RATIO * 0.01)
    assert pause_s(QUIET_AFTER_S, 0.02) == pause_s(math.inf, 0.02) == 0.0
    assert pause_s(0.0, 60.0) == MAX_PAUSE_S


@given(st.floats(0, 1e6), st.floats(0, 60))
def test_bulk_work_keeps_its_share(since_last_s: float, work_s: float) -> None:
    """At least 1 / (1 + PAUSE_RATIO) of the time, whatever arrives."""
    assert 0.0 <= pause_s(since_last_s, work_s) <= PAUSE_RATIO * work_s


async def test_without_interactive_articles_everything_is_one_slice() -> None:
    """All articles in one slice, any number of tasks in parallel, no pause."""
    environment = Environment(math.inf)
    throttle = environment.throttle

    async with throttle.slice(500) as first, throttle.slice(70, slice_articles=16) as second:
        assert (first, second) == (500, 70)
    assert (environment.now_s, throttle.throttled_s, environment.yields) == (0.0, 0.0, 0)


async def test_during_interactive_articles_slices_are_small_with_pauses_between() -> None:
    """The first starts immediately; each pause is the duration of the slice before it times PAUSE_RATIO."""
    environment = Environment(0.0)
    started = []

    for articles in (500, 500, 3):
        async with environment.throttle.slice(articles) as count:
            started.append((environment.now_s, count))
            environment.now_s += 0.01

    interval_s = 0.01 + PAUSE_RATIO * 0.01
    assert started == [
        (0.0, SLICE_ARTICLES),
        (pytest.approx(interval_s), SLICE_ARTICLES),
        (pytest.approx(2 * interval_s), 3),
    ]
    assert environment.throttle.throttled_s == pytest.approx(2 * PAUSE_RATIO * 0.01)
    assert environment.yields == 3


async def test_time_spent_elsewhere_counts_as_pause() -> None:
    """A task that has waited for its input starts its next slice immediately."""
    environment = Environment(0.0)
    async with environment.throttle.slice(500):
        environment.now_s += 0.01
    environment.now_s += 1.0
    async with environment.throttle.slice(500):
        pass

    assert environment.throttle.throttled_s == 0.0


async def test_slices_of_one_process_never_overlap() -> None:
    """A task that fails in its slice does not block the others."""
    throttle, running, most = Environment(0.0).throttle, 0, 0

    async def work(fails: bool) -> None:
        nonlocal running, most
        async with throttle.slice(500):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            if fails:
                raise ValueError

    results = await asyncio.gather(*(work(n == 1) for n in range(4)), return_exceptions=True)

    assert most == 1
    assert [type(result) for result in results] == [type(None), ValueError, type(None), type(None)]
