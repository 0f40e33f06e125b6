"""The scheduler tick: one leader, failures told once, an orderly stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent

from aggregator.background import scheduler as jobs_module
from aggregator.background.scheduler import DETECTOR_LEASE_KEY, PeriodicTask, Scheduler
from aggregator.domain import StreamItem, article_number_at
from aggregator.errors import StoreUnavailable
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection import BurstRule
from aggregator.events.repository import POSITION_KEY, EventRepository
from aggregator.store.memory import MemoryStore

NOW_MS = 20_000 * 86_400_000


class Stream:
    """A stream that can fail, wait, and says when it was read."""

    def __init__(self) -> None:
        self.items: list[StreamItem] = []
        self.problem: Exception | None = None
        self.read = asyncio.Event()
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
                terms=(("harbour", 1.0), ("bridge", 1.0)),
            )
            for i in range(count)
        ]

    async def read_stream(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        self.read.set()
        await self.gate.wait()
        if self.problem is not None:
            raise self.problem
        start = int(positions.get(b"s", b"0"))
        found = self.items[start : start + count]
        return found, {b"s": b"%d" % (start + len(found))}


def jobs_over(store: MemoryStore, stream: Stream, **wanted: object) -> Scheduler:
    detector = DetectorRunner(EventRepository(store), BurstRule())
    return Scheduler(detector, stream, lambda: NOW_MS, 2.0, **wanted)  # type: ignore[arg-type]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(clock=lambda: NOW_MS)


@pytest.fixture
def stream() -> Stream:
    return Stream()


async def test_one_replica_leads_and_the_other_waits(store: MemoryStore, stream: Stream) -> None:
    """The lease decides; when it ends the other takes over."""
    now_ms = NOW_MS
    store = MemoryStore(clock=lambda: now_ms)
    first, second = jobs_over(store, stream), jobs_over(store, stream)

    await first.tick()
    await second.tick()
    assert (first.is_leader, first.ticks, second.is_leader, second.follower_ticks) == (True, 1, False, 1)

    now_ms += 6_001  # three intervals and a little
    await second.tick()
    await first.tick()
    assert (first.is_leader, second.is_leader) == (False, True)


async def test_what_fires_is_logged(
    store: MemoryStore, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    """One line for each event, with its reason."""
    stream.burst()
    with caplog.at_level(logging.INFO, "aggregator.background.scheduler"):
        await jobs_over(store, stream).tick()

    assert caplog.text.count("fired: 16 items") == 1


async def test_a_failing_tick_is_told_once_and_tried_again(
    store: MemoryStore, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    """One line when it begins, one when another problem comes, one when it is over."""
    caplog.set_level(logging.INFO, "aggregator.background.scheduler")
    jobs = jobs_over(store, stream)
    for problem in (StoreUnavailable("The store is away."), ValueError("odd")):
        stream.problem = problem
        for _ in range(3):
            await jobs.tick()
    stream.problem = None
    await jobs.tick()
    await jobs.tick()

    assert jobs.errors == 6 and jobs.ticks == 2
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR", "INFO"]
    assert "The store is away." in caplog.text and "works again" in caplog.text


async def test_the_scheduler_ticks_and_stop_drains(store: MemoryStore, stream: Stream) -> None:
    """A running tick ends before ``stop`` returns; its work is saved and the lease is free."""
    jobs = Scheduler(DetectorRunner(EventRepository(store), BurstRule()), stream, lambda: NOW_MS, 0.05)
    stream.gate.clear()
    stream.burst()
    jobs.start()
    await asyncio.wait_for(stream.read.wait(), 10)

    stopping = asyncio.create_task(jobs.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    stream.gate.set()
    await asyncio.wait_for(stopping, 10)

    assert jobs.ticks == 1 and not jobs.is_leader
    assert (await store.read([POSITION_KEY]))[0] is not None
    assert await store.acquire(DETECTOR_LEASE_KEY, b"another", 1000)
    await jobs.stop()


async def test_jobs_start_once(store: MemoryStore, stream: Stream) -> None:
    """A second start is a mistake and says so; after a stop it is none."""
    jobs = jobs_over(store, stream)
    jobs.start()
    with pytest.raises(RuntimeError, match="running already"):
        jobs.start()
    await jobs.stop()
    jobs.start()
    await jobs.stop()


async def test_missed_and_overlapping_ticks_are_counted(store: MemoryStore, stream: Stream) -> None:
    """For the metrics: APScheduler itself only logs them."""
    jobs = jobs_over(store, stream)

    jobs._on_job_event(JobEvent(EVENT_JOB_MISSED, "events", "default"))
    jobs._on_job_event(JobEvent(EVENT_JOB_MAX_INSTANCES, "events", "default"))

    assert (jobs.misfires, jobs.overlaps) == (1, 1)


async def test_a_turn_beside_the_detector_ends_before_the_stop(store: MemoryStore, stream: Stream) -> None:
    """A delivery that is on its way is not cut off, and the detector has handed over by then."""
    begun, gate = asyncio.Event(), asyncio.Event()
    free: list[bool] = []

    async def turn() -> None:
        begun.set()
        await gate.wait()
        await jobs._tick_lock.acquire()
        free.append(await store.acquire(DETECTOR_LEASE_KEY, b"another", 1000))

    jobs = Scheduler(
        DetectorRunner(EventRepository(store), BurstRule()),
        stream,
        lambda: NOW_MS,
        0.05,
        extra_tasks=[PeriodicTask("courier", turn, 0.01)],
    )
    jobs.start()
    await asyncio.wait_for(stream.read.wait(), 10)
    await asyncio.wait_for(begun.wait(), 10)

    stopping = asyncio.create_task(jobs.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    gate.set()
    await asyncio.wait_for(stopping, 10)

    assert free == [True]


async def test_a_tick_that_hangs_does_not_hold_the_stop(
    store: MemoryStore, stream: Stream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After the deadline it is cancelled; nothing is half saved."""
    monkeypatch.setattr("aggregator.background.scheduler.STOP_TIMEOUT_S", 0.01)
    jobs = Scheduler(DetectorRunner(EventRepository(store), BurstRule()), stream, lambda: NOW_MS, 0.05)
    stream.gate.clear()
    jobs.start()
    await asyncio.wait_for(stream.read.wait(), 10)

    await asyncio.wait_for(jobs.stop(), 10)

    assert "did not stop in order" in caplog.text
    assert (await store.read([POSITION_KEY]))[0] is None


async def test_a_tick_that_is_cut_off_at_a_stop_is_told_in_one_sentence(
    store: MemoryStore, stream: Stream, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is done again elsewhere: nothing unexpected happened, and no traceback says so."""
    monkeypatch.setattr(jobs_module, "STOP_TIMEOUT_S", 0.01)
    stream.gate.clear()
    jobs = Scheduler(DetectorRunner(EventRepository(store), BurstRule()), stream, lambda: NOW_MS, 0.02)
    jobs.start()
    await stream.read.wait()
    running = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    await jobs.stop()
    await asyncio.gather(*running, return_exceptions=True)
    await asyncio.sleep(0)

    assert [record.exc_info for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert "did not stop in order: a tick took too long" in caplog.text
