"""Load control: the three mechanisms of a process act on each other, and on those of other processes."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import StoreUnavailable
from aggregator.ingest.load_control import (
    BEACON_KEY,
    MAX_PAUSE_S,
    PAUSE_RATIO,
    POLL_INTERVAL_S,
    PUBLISH_INTERVAL_S,
    QUIET_AFTER_S,
    SLICE_ARTICLES,
    ActivityBeacon,
    BulkThrottle,
    LoadControl,
    PriorityGate,
    pause_s,
)
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.hang_limit import HANG_LIMIT_S


class Environment:
    """Activity, clock and event loop of a throttle; sleeping advances the clock immediately."""

    def __init__(self, since_last_s: float) -> None:
        self.since_last_s, self.now_s, self.yields = since_last_s, 0.0, 0
        self.throttle = BulkThrottle(
            self.seconds_since_last, self.yield_control, clock_s=self.clock_s, sleep=self.sleep
        )

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


class Clock:
    """One time, in seconds for the beacon and in ms for the store."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def seconds(self) -> float:
        """The time in seconds."""
        return self.now_s

    def ms(self) -> int:
        """The time in ms."""
        return int(self.now_s * 1000)


async def published(beacon: ActivityBeacon) -> None:
    """Wait until the beacon has written its marker."""
    if beacon._publish_task is not None:
        await beacon._publish_task


async def test_without_arrivals_the_last_one_is_infinitely_long_ago() -> None:
    """A new beacon on an empty store."""
    assert await ActivityBeacon(MemoryStore()).seconds_since_last() == math.inf


async def test_another_process_sees_an_arrival(store: Store) -> None:
    """On any store; the process itself knows without reading."""
    server, bulk = ActivityBeacon(store), ActivityBeacon(store)
    server.record_arrival()
    await published(server)

    assert await bulk.seconds_since_last() == 0.0
    assert await server.seconds_since_last() < QUIET_AFTER_S


async def test_the_age_of_the_last_arrival_grows_after_the_marker_expired() -> None:
    """Beyond the expiry of the marker too; a later arrival resets it."""
    clock = Clock()
    store = MemoryStore(clock=clock.ms)
    server, bulk = (ActivityBeacon(store, clock_s=clock.seconds) for _ in range(2))
    server.record_arrival()
    await published(server)
    ages = []
    for _ in range(3):
        ages.append(await bulk.seconds_since_last())
        clock.now_s += QUIET_AFTER_S
    server.record_arrival()
    await published(server)

    assert ages == [0.0, QUIET_AFTER_S, 2 * QUIET_AFTER_S]
    assert await bulk.seconds_since_last() == 0.0


async def test_many_arrivals_cause_few_writes_and_reads() -> None:
    """At most one write per PUBLISH_INTERVAL_S and one read per POLL_INTERVAL_S."""
    clock = Clock()
    store = MemoryStore(clock=clock.ms)
    server, bulk = (ActivityBeacon(store, clock_s=clock.seconds) for _ in range(2))
    markers, ages = set(), []
    for _ in range(100):
        server.record_arrival()
        await published(server)
        markers.add((await store.read([BEACON_KEY]))[0])
        ages.append(await bulk.seconds_since_last())
        clock.now_s += PUBLISH_INTERVAL_S / 10

    assert len(markers) == 10
    assert max(ages) <= PUBLISH_INTERVAL_S + POLL_INTERVAL_S


class UnavailableStore(MemoryStore):
    """A store that cannot be reached."""

    async def put(self, *_: object, **__: object) -> list[bool]:
        """Fails."""
        raise StoreUnavailable("The store is unavailable.")

    async def read(self, *_: object) -> list[bytes | None]:
        """Fails."""
        raise StoreUnavailable("The store is unavailable.")


async def test_an_unavailable_store_is_ignored() -> None:
    """Arrivals in the same process still count; closing twice is allowed."""
    beacon = ActivityBeacon(UnavailableStore())
    beacon.record_arrival()
    await published(beacon)

    assert await beacon.seconds_since_last() < QUIET_AFTER_S
    assert await ActivityBeacon(UnavailableStore()).seconds_since_last() == math.inf
    await beacon.close()
    await beacon.close()


async def slice_size(control: LoadControl) -> int:
    """Articles of the next slice of a large bulk request."""
    async with control.throttle.slice(1000) as articles:
        return articles


async def test_bulk_work_is_not_sliced_while_nobody_posts_single_articles(store: Store) -> None:
    """All articles are one slice."""
    assert await slice_size(LoadControl.create(store)) == 1000


async def test_an_interactive_article_of_this_process_slices_bulk_work(store: Store) -> None:
    """From its arrival on, without a round trip in between."""
    control = LoadControl.create(store)
    control.activity.record_arrival()

    assert await slice_size(control) == SLICE_ARTICLES
    await control.activity.close()


async def test_an_interactive_article_of_another_process_slices_bulk_work(store: Store) -> None:
    """The beacon of both is in the store."""
    first, second = LoadControl.create(store), LoadControl.create(store)
    first.activity.record_arrival()
    assert first.activity._publish_task is not None
    await first.activity._publish_task

    assert await slice_size(second) == SLICE_ARTICLES


async def test_a_slice_begins_after_the_interactive_article_in_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The throttle waits at the gate of the same process."""
    monkeypatch.setattr("aggregator.ingest.load_control.MAX_WAIT_S", 60.0)
    control = LoadControl.create(MemoryStore())
    control.activity.record_arrival()
    with control.gate.high_priority():
        slicing = asyncio.create_task(slice_size(control))
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(control.gate._waiters) == 1
        assert not slicing.done()

    assert await slicing == SLICE_ARTICLES
    await control.activity.close()


async def test_bulk_tasks_pause_while_an_interactive_task_is_active() -> None:
    """For all steps of the interactive task; the bulk tasks resume as soon as it ends."""
    gate, seen = PriorityGate(), list[str]()

    async def batch() -> None:
        for _ in range(3):
            await gate.yield_control()
            seen.append("batch")

    async def interactive() -> None:
        with gate.high_priority():
            for _ in range(5):
                await asyncio.sleep(0)
                seen.append("interactive")

    await asyncio.gather(interactive(), batch(), batch())

    assert seen == ["interactive"] * 5 + ["batch"] * 6


async def test_the_pause_of_a_bulk_task_is_limited() -> None:
    """Under a constant interactive load bulk tasks still make progress, and no waiter leaks."""
    gate = PriorityGate()
    with gate.high_priority():
        async with asyncio.timeout(HANG_LIMIT_S):
            for _ in range(3):
                await gate.yield_control()

    assert not gate._waiters
    await gate.yield_control()


async def test_failed_and_cancelled_tasks_block_no_other() -> None:
    """An interactive task that raises, and a bulk task that is cancelled while it waits."""
    gate = PriorityGate()
    try:
        with gate.high_priority():
            waiting = asyncio.create_task(gate.yield_control())
            await asyncio.sleep(0)
            waiting.cancel()
            raise ValueError
    except ValueError:
        pass
    await asyncio.gather(waiting, return_exceptions=True)

    assert waiting.cancelled() and not gate._waiters and not gate._high_priority_count
