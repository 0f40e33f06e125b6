"""Periodic tasks of one replica (event detector, index maintenance), and the scheduler that runs all tasks.

The detector's commits are conditional, so two replicas that both believe they lead cannot duplicate events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import msgspec
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from aggregator.errors import StoreUnavailable
from aggregator.events.consumer import DetectorRunner
from aggregator.events.webhooks.subscriptions import MAX_SUBSCRIPTIONS
from aggregator.index import Index
from aggregator.index.article_stream import ArticleStream
from aggregator.index.snapshot import SketchWidth
from aggregator.index.upkeep.clock_guard import ClockGuard
from aggregator.index.upkeep.maintenance import SegmentMaintenance
from aggregator.index.upkeep.spaces import StoredSpace, count_articles
from aggregator.store.base import Store
from aggregator.store.optimistic import StoredValue, ValueFormat
from aggregator.store.periodic_task import PeriodicTask
from aggregator.time_units import MINUTE_MS

DETECTOR_LEASE_KEY = b"{events}leader"
STOP_TIMEOUT_S = 2.0
# Name servers and the mail server may hang for every target, and the detector needs threads as well.
MAX_THREADS = 3 * MAX_SUBSCRIPTIONS

logger = logging.getLogger(__name__)


class DetectorTask(PeriodicTask):
    """Lets the detector read the stream; ``ticks``: parts read as leader, the last at ``last_run_ms``."""

    def __init__(
        self,
        runner: DetectorRunner,
        article_stream: ArticleStream,
        clock: Callable[[], int],
        interval_s: float,
        *,
        pause_reason: Callable[[], Awaitable[str | None]] | None = None,
    ) -> None:
        store = runner.repository.store
        super().__init__(
            "the event detector", interval_s, store, DETECTOR_LEASE_KEY, pause_reason=pause_reason
        )
        self._runner, self._article_stream, self._clock = runner, article_stream, clock
        self._stopping = False
        self.ticks = self.last_run_ms = 0

    async def lead(self) -> None:
        """Read the stream to its end, renewing the lease for each part of a long backlog, until ``stop``."""
        await self._poll()
        while self._runner.has_backlog and not self._stopping and await self.acquire():
            await self._poll()

    async def stop(self) -> None:
        """Wait for the current run, save a checkpoint and release the lease. Logs what does not succeed."""
        self._stopping = True
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S), self.run_lock:
                if self.is_leader:
                    await self._runner.save_checkpoint(self._clock())
                    await self.abdicate()
        except (TimeoutError, StoreUnavailable) as error:
            logger.warning("%s did not stop cleanly: %s", self.name, str(error) or "a run took too long")

    async def _poll(self) -> None:
        now_ms = self._clock()
        changes = await self._runner.poll(self._article_stream, now_ms)
        self.ticks += 1
        self.last_run_ms = now_ms
        for change in changes:
            if change.kind == "fired":
                logger.info("event %s fired: %s", change.event.id, change.event.reason)


class Scheduler:
    """Runs ``detector`` and ``extra_tasks`` periodically in one replica.

    ``missed_runs``: of the detector, due over an interval ago or while the previous one was running.
    """

    def __init__(self, detector: DetectorTask, extra_tasks: Sequence[PeriodicTask] = ()) -> None:
        self.detector = detector
        self._extra_tasks = extra_tasks
        self._scheduler: AsyncIOScheduler | None = None
        self.missed_runs = 0

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._scheduler is not None

    def start(self) -> None:
        """Start, once until ``stop``; needs a running event loop."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MAX_THREADS))
        scheduler = AsyncIOScheduler(timezone="UTC")
        scheduler.add_listener(self._on_job_event, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        for task in (self.detector, *self._extra_tasks):
            scheduler.add_job(
                partial(_suppress_cancellation, task.run_once),
                "interval",
                seconds=task.interval_s,
                id=task.name,
                name=task.name,
                misfire_grace_time=max(1, round(task.interval_s)),  # 1 s drops ticks on a busy machine
                coalesce=True,
                max_instances=1,
            )
        scheduler.start()
        self._scheduler = scheduler

    async def stop(self) -> None:
        """Start no new runs, release the detector's lease, then wait for the extra tasks. Idempotent."""
        scheduler, self._scheduler = self._scheduler, None
        if scheduler is None:
            return
        scheduler.pause()
        await self.detector.stop()
        await asyncio.gather(*map(_wait_for_run, self._extra_tasks))
        scheduler.shutdown(wait=False)  # APScheduler 3.11 would cancel running coroutines

    def _on_job_event(self, event: JobEvent) -> None:
        self.missed_runs += event.job_id == self.detector.name


async def _wait_for_run(task: PeriodicTask) -> None:
    """Wait for the current run; one that takes longer is cancelled with the scheduler, and repeated later."""
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S), task.run_lock:
            pass
    except TimeoutError:
        logger.warning("task %s did not end within %g s and is cancelled", task.name, STOP_TIMEOUT_S)


async def _suppress_cancellation(run: Callable[[], Awaitable[None]]) -> None:
    with suppress(asyncio.CancelledError):  # ``stop`` has logged it; APScheduler would add a traceback
        await run()


MAINTENANCE_LEASE_KEY = b"{upkeep}leader"
MAINTENANCE_INTERVAL_S = 5.0
_BACKUP_FORMAT = ValueFormat(msgspec.msgpack.Decoder(int), "The time of the last backup", int)
TIME_BUDGET_MS = 250
STATISTICS_INTERVAL_MS = MINUTE_MS


@dataclass(frozen=True, slots=True)
class SpaceStatistics:
    """A space: ``articles`` of ``count_articles``, live ``segments``, ``sketch_width`` of the writable."""

    articles: int
    oldest_ms: int | None
    segments: int
    sketch_width: SketchWidth


async def measure_space(index: Index, space: str) -> SpaceStatistics:
    """Statistics of a space as it is stored now. Raises StoreUnavailable."""
    await index.segments.refresh(space)
    stack = (await index.segments.read({space: ()})).stacks[space]
    found = await count_articles(index.store, space, StoredSpace())
    return SpaceStatistics(found.articles, found.oldest_ms or None, len(stack.tags), stack.sketch_widths[-1])


def last_backup(store: Store) -> StoredValue[int]:
    """The time, in ms, that the last complete ``aggregator backup`` has in its manifest; 0: none."""
    return StoredValue(store, b"{upkeep}backup", _BACKUP_FORMAT)


class IndexMaintenance(PeriodicTask):
    """Compaction by the leader, by the trusted time of ``clock_guard``; ``clock`` measures its slices.

    Each run works for at most ``TIME_BUDGET_MS`` and leaves the rest to the next one, so requests wait for at
    most one chunk of work. Progress is stored (``compaction.py``). In each run every replica reads what
    the leader changed: the segments and the floor. ``expiring_prefixes``: see ``index.expiry_sweep``.
    """

    def __init__(
        self,
        index: Index,
        clock: Callable[[], int],
        clock_guard: ClockGuard | None = None,
        *,
        expiring_prefixes: Mapping[bytes, int] | None = None,
    ) -> None:
        super().__init__("index maintenance", MAINTENANCE_INTERVAL_S, index.store, MAINTENANCE_LEASE_KEY)
        self._index = index
        self._clock = clock
        self._clock_guard = clock_guard or ClockGuard(index, clock)
        self._pending_steps: AsyncIterator[None] | None = None
        self.jobs = SegmentMaintenance(index, expiring_prefixes=expiring_prefixes)
        self.statistics: dict[str, SpaceStatistics] = {}
        self._statistics_ms, self.last_backup_ms = -STATISTICS_INTERVAL_MS, 0

    async def acquire(self) -> bool:
        """As of any task; not under an implausible clock, whose observation comes first."""
        if await self._clock_guard.observe() is None:
            return await super().acquire()
        await self.abdicate()
        return False

    async def lead(self) -> None:
        """One slice of work; none before the first article."""
        await self._compact()
        await self._refresh_statistics()

    async def follow(self) -> None:
        """Read what the leader changed."""
        self._pending_steps = None
        await self.refresh()
        await self._refresh_statistics()

    def reset(self) -> None:
        """Begin again after a failure."""
        self._pending_steps = None

    async def refresh(self) -> None:
        """Read what runs of other processes changed. Raises StoreUnavailable."""
        await self._index.segments.refresh_all(self._index.all_spaces)

    async def _compact(self) -> None:
        started_ms = self._clock()
        if (trusted_ms := self._clock_guard.trusted_ms) is None:
            return
        if self._pending_steps is None:
            self._pending_steps = self.jobs.steps(trusted_ms)
        else:
            await self.jobs.expire(trusted_ms)
        async for _ in self._pending_steps:
            # A negative duration is a clock that was set back: end the slice rather than run on.
            if not 0 <= self._clock() - started_ms < TIME_BUDGET_MS:
                return
        self._pending_steps = None

    async def _refresh_statistics(self) -> None:
        now_ms = self._clock()
        if not 0 <= now_ms - self._statistics_ms < STATISTICS_INTERVAL_MS:
            self._statistics_ms, self.last_backup_ms = now_ms, await last_backup(self._index.store).read()
            self.statistics = {space: await measure_space(self._index, space) for space in self._index.spaces}
