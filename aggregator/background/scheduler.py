"""Scheduler of the periodic tasks of one replica; the event detector is the first of them.

The detector's commits are conditional, so two replicas that both believe they lead cannot duplicate events.
APScheduler 3.11 cancels running coroutines on shutdown, so ``stop`` waits for the runs first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from aggregator.errors import StoreUnavailable
from aggregator.events.consumer import ArticleStreamReader, DetectorRunner
from aggregator.store.periodic_task import PeriodicTask

DETECTOR_LEASE_KEY = b"{events}leader"
STOP_TIMEOUT_S = 2.0

logger = logging.getLogger(__name__)


class DetectorTask(PeriodicTask):
    """Lets the event detector read the article stream.

    ``ticks``: parts of the stream read as leader, since start; ``last_run_ms``: time of the last one.
    """

    def __init__(
        self,
        runner: DetectorRunner,
        article_stream: ArticleStreamReader,
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

    @property
    def articles_read(self) -> int:
        """Number of articles that the detector of this process has read."""
        return self._runner.items_read

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
                    await self.lease.release()
                    self.is_leader = False
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

    Counters of the detector since start: ``misfires`` (a run started more than an interval late),
    ``overlaps`` (the previous one was still running).
    """

    def __init__(self, detector: DetectorTask, extra_tasks: Sequence[PeriodicTask] = ()) -> None:
        self.detector = detector
        self._extra_tasks = extra_tasks
        self._scheduler: AsyncIOScheduler | None = None
        self.misfires = self.overlaps = 0

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._scheduler is not None

    def start(self) -> None:
        """Start; needs a running event loop. Raises RuntimeError if it is running."""
        if self._scheduler is not None:
            raise RuntimeError("The scheduler is running already.")
        scheduler = AsyncIOScheduler(timezone="UTC")
        scheduler.add_listener(self._on_job_event, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        for task in (self.detector, *self._extra_tasks):
            _add_job(scheduler, task)
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
        scheduler.shutdown(wait=False)

    def _on_job_event(self, event: JobEvent) -> None:
        if event.job_id != self.detector.name:
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


def _add_job(scheduler: AsyncIOScheduler, task: PeriodicTask) -> None:
    scheduler.add_job(
        partial(_suppress_cancellation, task.run_once),
        "interval",
        seconds=task.interval_s,
        id=task.name,
        name=task.name,
        # The default of 1 s drops ticks on a busy machine.
        misfire_grace_time=max(1, round(task.interval_s)),
        coalesce=True,
        max_instances=1,
    )
