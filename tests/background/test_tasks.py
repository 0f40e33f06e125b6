"""Scheduler: one leader, failures logged once, a clean stop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence

import pytest
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent

from aggregator.background import tasks as tasks_module
from aggregator.background.tasks import (
    DETECTOR_LEASE_KEY,
    MAINTENANCE_LEASE_KEY,
    DetectorTask,
    IndexMaintenance,
    Scheduler,
    last_backup,
)
from aggregator.domain import StreamItem, article_number_at
from aggregator.errors import StoreUnavailable
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection.model import BurstRule
from aggregator.events.repository import POSITION_KEY, EventRepository
from aggregator.events.webhooks.subscriptions import MAX_SUBSCRIPTIONS
from aggregator.index.article_stream import ArticleStream
from aggregator.store.memory import MemoryStore
from aggregator.store.periodic_task import Lease, PeriodicTask
from aggregator.time_units import MINUTE_MS
from tests.support.factories import core, edited, story
from tests.support.hang_limit import HANG_LIMIT_S

NOW_MS = 20_000 * 86_400_000


class Stream(ArticleStream):
    """A stream that can fail and block, and signals when it is read."""

    def __init__(self) -> None:
        self.items: list[StreamItem] = []
        self.problem: Exception | None = None
        self.was_read = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    def burst(self, count: int = 16) -> None:
        self.items += [
            StreamItem(
                number=article_number_at(NOW_MS, i),
                first_version=article_number_at(NOW_MS, i),
                id=f"a{i}",
                verdict="new",
                arrived_ms=NOW_MS,
                title=f"Harbour bridge collapse {i}",
                source=f"Outlet {i}",
                terms=(("harbour", 1.0), ("bridge", 1.0)),
            )
            for i in range(count)
        ]

    async def read(
        self, positions: Mapping[bytes, bytes], count: int, *, with_story_terms: bool = True
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        self.was_read.set()
        await self.gate.wait()
        if self.problem is not None:
            raise self.problem
        start = int(positions.get(b"s", b"0"))
        found = self.items[start : start + count]
        return found, {b"s": b"%d" % (start + len(found))}


def build_scheduler(
    store: MemoryStore, stream: Stream, interval_s: float = 2.0, tasks: Sequence[PeriodicTask] = ()
) -> Scheduler:
    """A scheduler whose default interval no test waits for."""
    runner = DetectorRunner(EventRepository(store), BurstRule())
    return Scheduler(DetectorTask(runner, stream, lambda: NOW_MS, interval_s), tasks)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(clock=lambda: NOW_MS)


@pytest.fixture
def stream() -> Stream:
    return Stream()


async def test_one_replica_leads_and_the_other_follows(store: MemoryStore, stream: Stream) -> None:
    """The holder of the lease leads; when it expires, the other replica takes over."""
    now_ms = NOW_MS
    store = MemoryStore(clock=lambda: now_ms)
    first, second = build_scheduler(store, stream).detector, build_scheduler(store, stream).detector

    await first.run_once()
    await second.run_once()
    assert (first.is_leader, first.ticks, second.is_leader, second.skipped) == (True, 1, False, 1)

    now_ms += 6_001  # just over three intervals
    await second.run_once()
    await first.run_once()
    assert (first.is_leader, second.is_leader) == (False, True)


async def test_an_event_that_fires_is_logged(
    store: MemoryStore, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    """One line per event, with its reason."""
    stream.burst()
    with caplog.at_level(logging.INFO, "aggregator.background.tasks"):
        await build_scheduler(store, stream).detector.run_once()

    assert caplog.text.count("fired: 16 items") == 1


async def test_a_failing_tick_is_logged_once_and_retried(
    store: MemoryStore, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    """One line for the first failure, one when the problem changes, one for three runs that succeed."""
    caplog.set_level(logging.INFO, "aggregator")
    scheduler = build_scheduler(store, stream)
    for problem in (StoreUnavailable("The store is unavailable."), ValueError("odd")):
        stream.problem = problem
        for _ in range(3):
            await scheduler.detector.run_once()
    for stream.problem in (None, None, ValueError("odd"), None, None):  # as in a store that is full
        await scheduler.detector.run_once()
    assert "works again" not in caplog.text
    await scheduler.detector.run_once()

    assert scheduler.detector.errors == 7 and scheduler.detector.ticks == 5
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "INFO"]
    assert "The store is unavailable." in caplog.text and "works again" in caplog.text


async def test_stop_waits_for_the_running_tick(store: MemoryStore, stream: Stream) -> None:
    """The tick ends before ``stop`` returns; its state is saved and the lease is free."""
    scheduler = build_scheduler(store, stream, 0.05)
    stream.gate.clear()
    stream.burst()
    scheduler.start()
    await asyncio.wait_for(stream.was_read.wait(), HANG_LIMIT_S)

    stopping = asyncio.create_task(scheduler.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    stream.gate.set()
    await asyncio.wait_for(stopping, HANG_LIMIT_S)

    assert scheduler.detector.ticks == 1 and not scheduler.detector.is_leader
    assert (await store.read([POSITION_KEY]))[0] is not None
    assert await Lease(store, DETECTOR_LEASE_KEY, 1000).acquire()
    await scheduler.stop()


async def test_a_start_after_a_stop_works(store: MemoryStore, stream: Stream) -> None:
    """Nothing of the first run is left."""
    scheduler = build_scheduler(store, stream)
    scheduler.start()
    await scheduler.stop()
    scheduler.start()
    await scheduler.stop()


async def test_missed_and_overlapping_ticks_are_counted(store: MemoryStore, stream: Stream) -> None:
    """The counters are for metrics: APScheduler only logs these events."""
    scheduler = build_scheduler(store, stream)

    scheduler._on_job_event(JobEvent(EVENT_JOB_MISSED, scheduler.detector.name, "default"))
    scheduler._on_job_event(JobEvent(EVENT_JOB_MAX_INSTANCES, scheduler.detector.name, "default"))

    assert scheduler.missed_runs == 2


async def test_stop_waits_for_running_extra_tasks(store: MemoryStore, stream: Stream) -> None:
    """A webhook delivery in progress is not cancelled; the detector has released its lease before."""
    started, gate = asyncio.Event(), asyncio.Event()
    free: list[bool] = []

    class Delivery(PeriodicTask):
        async def lead(self) -> None:
            started.set()
            await gate.wait()
            await scheduler.detector.run_lock.acquire()
            free.append(await Lease(store, DETECTOR_LEASE_KEY, 1000).acquire())

    delivery = Delivery("webhooks", 0.01, store, b"webhooks", lease_ms=60_000)
    scheduler = build_scheduler(store, stream, 0.05, [delivery])
    scheduler.start()
    await asyncio.wait_for(stream.was_read.wait(), HANG_LIMIT_S)
    await asyncio.wait_for(started.wait(), HANG_LIMIT_S)

    stopping = asyncio.create_task(scheduler.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    gate.set()
    await asyncio.wait_for(stopping, HANG_LIMIT_S)

    assert free == [True]


async def test_a_hanging_tick_does_not_delay_the_stop(
    store: MemoryStore, stream: Stream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After the timeout it is cancelled, and nothing of it is saved."""
    monkeypatch.setattr("aggregator.background.tasks.STOP_TIMEOUT_S", 0.01)
    scheduler = build_scheduler(store, stream, 0.05)
    stream.gate.clear()
    scheduler.start()
    await asyncio.wait_for(stream.was_read.wait(), HANG_LIMIT_S)

    await asyncio.wait_for(scheduler.stop(), HANG_LIMIT_S)

    assert "did not stop cleanly" in caplog.text
    assert (await store.read([POSITION_KEY]))[0] is None


async def test_a_tick_cancelled_by_a_stop_is_logged_without_a_traceback(
    store: MemoryStore, stream: Stream, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next leader repeats it: nothing unexpected happened."""
    monkeypatch.setattr(tasks_module, "STOP_TIMEOUT_S", 0.01)
    stream.gate.clear()
    scheduler = build_scheduler(store, stream, 0.02)
    scheduler.start()
    await stream.was_read.wait()
    running = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    await scheduler.stop()
    await asyncio.gather(*running, return_exceptions=True)
    await asyncio.sleep(0)

    assert [record.exc_info for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert "did not stop cleanly: a run took too long" in caplog.text


@pytest.mark.integration
async def test_a_run_is_short_and_the_next_one_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 500,000 keys of a sealed segment take more than one run of 40 ms, and all are compacted."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", story(1))
    await newsroom.post("a", edited(story(1), 2))
    (space,) = newsroom.index.spaces
    await newsroom.index.segments.seal(space, 0, newsroom.clock())
    # Each reading of the clock advances it by 1 ms.
    maintenance = IndexMaintenance(newsroom.index, newsroom.clock)
    monkeypatch.setattr(tasks_module, "TIME_BUDGET_MS", 40)

    await maintenance.run_once()
    assert maintenance.jobs.compactor.entries_removed == 0
    runs = 1
    while maintenance._pending_steps is not None:
        await maintenance.run_once()
        runs += 1

    assert maintenance.jobs.compactor.entries_removed > 4
    assert runs == maintenance.runs > 20


async def test_every_replica_knows_the_last_backup() -> None:
    """From the start on, and within a minute of it; the metric is absent before the first."""
    newsroom = core(MemoryStore())
    maintenance = IndexMaintenance(newsroom.index, newsroom.clock)
    await maintenance.run_once()
    assert maintenance.last_backup_ms == 0
    await last_backup(newsroom.index.store).edit(lambda _: 1_795_164_000_000)
    newsroom.clock.now_ms += MINUTE_MS
    await maintenance.run_once()

    assert maintenance.last_backup_ms == 1_795_164_000_000


async def test_followers_read_the_changes_of_the_leader() -> None:
    """They do no work, but know the segments and the floor after their run."""
    store = MemoryStore()
    leader, other = core(store), core(store)
    (space,) = leader.index.spaces
    await other.index.segments.stack(space)
    first, second = IndexMaintenance(leader.index, leader.clock), IndexMaintenance(other.index, other.clock)
    await first.run_once()
    await leader.index.segments.seal(space, 0, 1)
    await leader.index.segments.advance_head(space, floor=77)

    await second.run_once()

    assert (second.runs, second.skipped) == (0, 1)
    layers = await other.index.segments.stack(space)
    assert (layers.last, layers.floor) == (1, 77)


async def test_a_failing_run_is_logged_once_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    """The store is unavailable for two runs."""

    class FailingStore(MemoryStore):
        fails = True

        async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
            if self.fails and MAINTENANCE_LEASE_KEY in keys:
                raise StoreUnavailable("The store is unavailable.")
            return await super().read(keys)

    store = FailingStore()
    newsroom = core(store)
    maintenance = IndexMaintenance(newsroom.index, newsroom.clock)
    with caplog.at_level(logging.WARNING):
        await maintenance.run_once()
        await maintenance.run_once()
    store.fails = False
    await maintenance.run_once()

    assert (maintenance.errors, maintenance.runs, len(caplog.records)) == (2, 1, 1)


async def test_look_ups_that_hang_for_every_target_leave_threads_to_the_detector() -> None:
    """It compresses its state in one; name servers and the mail server occupy one per target."""
    scheduler = build_scheduler(MemoryStore(), Stream())
    scheduler.start()
    release = threading.Event()
    hanging = [asyncio.create_task(asyncio.to_thread(release.wait)) for _ in range(2 * MAX_SUBSCRIPTIONS)]
    async with asyncio.timeout(HANG_LIMIT_S):
        await asyncio.to_thread(int)
    assert not any(task.done() for task in hanging)
    release.set()
    await asyncio.gather(*hanging)
    await scheduler.stop()
