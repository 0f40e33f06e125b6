"""When does the detector run, and the upkeep of the index? A scheduler tick on every replica; one of them leads.

Each tick takes or renews a lease (three intervals long) and, if it got it, lets ``Events`` read on. The lease
only saves work: that nothing is doubled when two replicas believe they lead is the compare-and-set of
``events.py``. A tick that fails is tried again by the next; its reason is logged when it changes, not every
time. APScheduler 3.11 cancels running coroutines on shutdown, so ``stop`` waits for the tick first.
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
from aggregator.store.lease import Lease

DETECTOR_LEASE_KEY = b"{events}leader"
LEASE_TTL_INTERVALS = 3
STOP_TIMEOUT_S = 2.0
DETECTOR_JOB_ID = "events"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """Further work in turns, ``seconds`` apart. A turn takes a lease of its own and never raises."""

    name: str
    run_once: Callable[[], Awaitable[None]]
    interval_s: float
    run_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """One turn; ``running`` is held meanwhile."""
        async with self.run_lock:
            await self.run_once()


class Scheduler:
    """The scheduled work of one replica.

    Counters, since start: ``ticks`` finished as leader, ``idle`` (another replica leads), ``misfires`` (a
    tick came over an interval late), ``overlaps`` (the one before was still running), ``errors``.
    ``leading`` and ``last_tick_ms`` are the present state. ``beside``: what else is to be done.
    """

    def __init__(
        self,
        detector: DetectorRunner,
        article_stream: ArticleStreamReader,
        clock: Callable[[], int],
        interval_s: float,
        *,
        extra_tasks: Sequence[PeriodicTask] = (),
    ) -> None:
        self._detector = detector
        self._article_stream = article_stream
        self._clock = clock
        self._interval_s = interval_s
        self._extra_tasks = extra_tasks
        self._lease = Lease(detector.repository.store, DETECTOR_LEASE_KEY, int(LEASE_TTL_INTERVALS * interval_s * 1000))
        self._scheduler: AsyncIOScheduler | None = None
        self._tick_lock = asyncio.Lock()
        self._stopping = False
        self._last_error: str | None = None
        self.ticks = self.follower_ticks = self.misfires = self.overlaps = self.errors = 0
        self.is_leader = False
        self.last_tick_ms = 0

    @property
    def is_running(self) -> bool:
        """Started, and not stopped."""
        return self._scheduler is not None

    @property
    def articles_read(self) -> int:
        """How many articles the detector has read here."""
        return self._detector.items_read

    def start(self) -> None:
        """Begin to tick; needs a running event loop. Starting twice is an error of the caller."""
        if self._scheduler is not None:
            raise RuntimeError("The jobs are running already.")
        scheduler = AsyncIOScheduler(timezone="UTC")
        scheduler.add_listener(self._on_job_event, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        _add_job(scheduler, DETECTOR_JOB_ID, self.tick, self._interval_s)
        for work in self._extra_tasks:
            _add_job(scheduler, work.name, work.run, work.interval_s)
        scheduler.start()
        self._scheduler = scheduler

    async def stop(self) -> None:
        """No new turns; the detector hands over first, then what runs beside it may end. Idempotent."""
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
                "The event detector did not stop in order: %s", str(error) or "a tick took too long"
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
        """Until all is read: after a bulk load in several parts, so that the lease lasts, and a stop has its turn."""
        while True:
            self.is_leader = await self._lease.acquire()
            if not self.is_leader:
                self.follower_ticks += 1
                return
            await self._poll_once()
            if not self._detector.has_backlog or self._stopping:
                return

    async def _poll_once(self) -> None:
        now_ms = self._clock()
        changes = await self._detector.poll(self._article_stream, now_ms)
        self.ticks += 1
        self.last_tick_ms = now_ms
        for change in changes:
            if change.kind == "fired":
                logger.info("Event %s fired: %s", change.event.id, change.event.reason)

    async def _release_leadership(self) -> None:
        if self.is_leader:
            await self._detector.save_checkpoint(self._clock())
            await self._lease.release()
            self.is_leader = False

    def _record_failure(self, problem: str, *, unexpected: bool = False) -> None:
        self.errors += 1
        self.is_leader = False
        if problem != self._last_error:
            logger.error("The event detector failed and will try again: %s", problem, exc_info=unexpected)
        self._last_error = problem

    def _record_recovery(self) -> None:
        if self._last_error is not None:
            logger.info("The event detector works again.")
        self._last_error = None

    def _on_job_event(self, event: JobEvent) -> None:
        if event.job_id != DETECTOR_JOB_ID:
            return
        if event.code == EVENT_JOB_MISSED:
            self.misfires += 1
        else:
            self.overlaps += 1


async def _wait_for_run(task: PeriodicTask) -> None:
    """Wait for the running turn; what takes longer is cancelled with the scheduler, and done again elsewhere."""
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S), task.run_lock:
            pass
    except TimeoutError:
        logger.warning("A turn of %s took longer than %g s to end and is cut off.", task.name, STOP_TIMEOUT_S)


async def _suppress_cancellation(run: Callable[[], Awaitable[None]]) -> None:
    """``stop`` has told of a turn that takes too long; the scheduler would add a traceback for cancelling it."""
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
        # The default of one second drops ticks on a busy machine (reference/ecosystem, section 4).
        misfire_grace_time=max(1, round(interval_s)),
        coalesce=True,
        max_instances=1,
    )
