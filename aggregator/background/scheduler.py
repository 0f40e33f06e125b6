"""Scheduler of periodic background tasks; the event detector runs on one leader replica.

Each tick acquires or renews a lease of three intervals and, as the leader, lets the detector read the article
stream. The lease only avoids duplicate work: the detector's commits are conditional, so two replicas that
both believe they lead cannot duplicate events. A failed tick is retried by the next one; its reason is logged
when it changes. APScheduler 3.11 cancels running coroutines on shutdown, so ``stop`` waits for the tick
first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from aggregator.errors import AggregatorError, StoreUnavailable
from aggregator.events.consumer import ArticleStreamReader, DetectorRunner
from aggregator.log_limits import ChangeFilter
from aggregator.store.lease import Lease

DETECTOR_LEASE_KEY = b"{events}leader"
LEASE_TTL_INTERVALS = 3
STOP_TIMEOUT_S = 2.0
DETECTOR_JOB_ID = "events"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """A further task, run every ``interval_s``; ``run_once`` never raises and acquires its own lease."""

    name: str
    run_once: Callable[[], Awaitable[None]]
    interval_s: float
    run_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """Run the task once while holding ``run_lock``."""
        async with self.run_lock:
            await self.run_once()


class Scheduler:
    """Runs the event detector and ``extra_tasks`` periodically in one replica.

    Counters since start: ``ticks`` finished as leader, ``follower_ticks`` (another replica leads),
    ``misfires`` (a tick started more than an interval late), ``overlaps`` (the previous tick was still
    running), ``errors``. ``is_leader`` and ``last_tick_ms`` are the current state. ``interval_s``: between
    ticks of the detector. ``pause_reason`` returns why this replica must not detect now, None if it may: then
    another one can, and otherwise the articles wait in their stream.
    """

    def __init__(
        self,
        detector: DetectorRunner,
        article_stream: ArticleStreamReader,
        clock: Callable[[], int],
        interval_s: float,
        *,
        extra_tasks: Sequence[PeriodicTask] = (),
        pause_reason: Callable[[], Awaitable[str | None]] | None = None,
    ) -> None:
        self._detector = detector
        self._article_stream = article_stream
        self._clock = clock
        self._interval_s = interval_s
        self._extra_tasks = extra_tasks
        self._pause_reason = pause_reason
        self._pauses = ChangeFilter()
        self._lease = Lease(
            detector.repository.store, DETECTOR_LEASE_KEY, int(LEASE_TTL_INTERVALS * interval_s * 1000)
        )
        self._scheduler: AsyncIOScheduler | None = None
        self._tick_lock = asyncio.Lock()
        self._stopping = False
        self._problems = ChangeFilter()
        self.ticks = self.follower_ticks = self.misfires = self.overlaps = self.errors = 0
        self.is_leader = False
        self.last_tick_ms = 0

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._scheduler is not None

    @property
    def articles_read(self) -> int:
        """Number of articles that the detector of this process has read."""
        return self._detector.items_read

    def start(self) -> None:
        """Start; needs a running event loop. Raises RuntimeError if it is running."""
        if self._scheduler is not None:
            raise RuntimeError("The scheduler is running already.")
        scheduler = AsyncIOScheduler(timezone="UTC")
        scheduler.add_listener(self._on_job_event, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        _add_job(scheduler, DETECTOR_JOB_ID, self.tick, self._interval_s)
        for task in self._extra_tasks:
            _add_job(scheduler, task.name, task.run, task.interval_s)
        scheduler.start()
        self._scheduler = scheduler

    async def stop(self) -> None:
        """Start no new runs, release the detector's lease, then wait for the extra tasks. Idempotent."""
        scheduler, self._scheduler = self._scheduler, None
        if scheduler is None:
            return
        scheduler.pause()
        self._stopping = True
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S), self._tick_lock:
                await self._release_leadership()
        except (TimeoutError, StoreUnavailable) as error:
            logger.warning(
                "the event detector did not stop cleanly: %s", str(error) or "a tick took too long"
            )
        await asyncio.gather(*map(_wait_for_run, self._extra_tasks))
        scheduler.shutdown(wait=False)

    async def tick(self) -> None:
        """One tick. Never raises, except when cancelled."""
        async with self._tick_lock:
            try:
                await self._poll_backlog()
            except AggregatorError as error:
                self._record_failure(str(error))
            except Exception as error:
                self._record_failure(repr(error), unexpected=True)
            else:
                self._record_recovery()

    async def _poll_backlog(self) -> None:
        """Read the stream to its end, renewing the lease for each part of a long backlog, until ``stop``."""
        while True:
            if await self._is_paused():
                return
            self.is_leader = await self._lease.acquire()
            if not self.is_leader:
                self.follower_ticks += 1
                return
            await self._poll_once()
            if not self._detector.has_backlog or self._stopping:
                return

    async def _is_paused(self) -> bool:
        """Whether this replica must wait; it frees the lease then."""
        reason = await self._pause_reason() if self._pause_reason is not None else None
        if reason is None:
            if self._pauses.clear():
                logger.warning("the event detector continues")
        elif self._pauses.is_new("paused"):
            logger.warning("the event detector pauses: %s", reason)
            await self._lease.release()
            self.is_leader = False
        return reason is not None

    async def _poll_once(self) -> None:
        now_ms = self._clock()
        changes = await self._detector.poll(self._article_stream, now_ms)
        self.ticks += 1
        self.last_tick_ms = now_ms
        for change in changes:
            if change.kind == "fired":
                logger.info("event %s fired: %s", change.event.id, change.event.reason)

    async def _release_leadership(self) -> None:
        if self.is_leader:
            await self._detector.save_checkpoint(self._clock())
            await self._lease.release()
            self.is_leader = False

    def _record_failure(self, problem: str, *, unexpected: bool = False) -> None:
        self.errors += 1
        self.is_leader = False
        if self._problems.is_new(problem):
            logger.error("the event detector failed and will be retried: %s", problem, exc_info=unexpected)

    def _record_recovery(self) -> None:
        if self._problems.clear():
            logger.info("the event detector works again")

    def _on_job_event(self, event: JobEvent) -> None:
        if event.job_id != DETECTOR_JOB_ID:
            return
        if event.code == EVENT_JOB_MISSED:
            self.misfires += 1
        else:
            self.overlaps += 1


async def _wait_for_run(task: PeriodicTask) -> None:
    """Wait for the current run; one that takes longer is cancelled with the scheduler, and repeated later."""
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S), task.run_lock:
            pass
    except TimeoutError:
        logger.warning("task %s did not end within %g s and is cancelled", task.name, STOP_TIMEOUT_S)


async def _suppress_cancellation(run: Callable[[], Awaitable[None]]) -> None:
    """Run a task; ``stop`` has already logged a cancellation, and APScheduler would add a traceback."""
    with suppress(asyncio.CancelledError):
        await run()


def _add_job(
    scheduler: AsyncIOScheduler, id_: str, run: Callable[[], Awaitable[None]], interval_s: float
) -> None:
    scheduler.add_job(
        partial(_suppress_cancellation, run),
        "interval",
        seconds=interval_s,
        id=id_,
        name=id_,
        # The default of 1 s drops ticks on a busy machine.
        misfire_grace_time=max(1, round(interval_s)),
        coalesce=True,
        max_instances=1,
    )
