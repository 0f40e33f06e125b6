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
from aggregator.events.consumer import Events, Source
from aggregator.store.lease import Lease

LEASE_KEY = b"{events}leader"
LEASE_INTERVALS = 3
DRAIN_S = 2.0
JOB_ID = "events"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Work:
    """Further work in turns, ``seconds`` apart. A turn takes a lease of its own and never raises."""

    name: str
    turn: Callable[[], Awaitable[None]]
    seconds: float
    running: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """One turn; ``running`` is held meanwhile."""
        async with self.running:
            await self.turn()


class Jobs:
    """The scheduled work of one replica.

    Counters, since start: ``ticks`` finished as leader, ``idle`` (another replica leads), ``misfires`` (a
    tick came over an interval late), ``overlaps`` (the one before was still running), ``errors``.
    ``leading`` and ``last_tick_ms`` are the present state. ``beside``: what else is to be done.
    """

    def __init__(
        self,
        events: Events,
        index: Source,
        clock: Callable[[], int],
        tick_seconds: float,
        *,
        beside: Sequence[Work] = (),
    ) -> None:
        self._events = events
        self._index = index
        self._clock = clock
        self._interval_s = tick_seconds
        self._beside = beside
        self._lease = Lease(events.store, LEASE_KEY, int(LEASE_INTERVALS * tick_seconds * 1000))
        self._scheduler: AsyncIOScheduler | None = None
        self._running = asyncio.Lock()
        self._stopping = False
        self._problem: str | None = None
        self.ticks = self.idle = self.misfires = self.overlaps = self.errors = 0
        self.leading = False
        self.last_tick_ms = 0

    @property
    def running(self) -> bool:
        """Started, and not stopped."""
        return self._scheduler is not None

    @property
    def articles(self) -> int:
        """How many articles the detector has read here."""
        return self._events.items_read

    def start(self) -> None:
        """Begin to tick; needs a running event loop. Starting twice is an error of the caller."""
        if self._scheduler is not None:
            raise RuntimeError("The jobs are running already.")
        scheduler = AsyncIOScheduler(timezone="UTC")
        scheduler.add_listener(self._count, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        _schedule(scheduler, JOB_ID, self.tick, self._interval_s)
        for work in self._beside:
            _schedule(scheduler, work.name, work.run, work.seconds)
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
            async with asyncio.timeout(DRAIN_S), self._running:
                await self._hand_over()
        except (TimeoutError, StoreUnavailable) as error:
            logger.warning(
                "The event detector did not stop in order: %s", str(error) or "a tick took too long"
            )
        await asyncio.gather(*map(_drained, self._beside))
        scheduler.shutdown(wait=False)

    async def tick(self) -> None:
        """One tick. Never raises, except when cancelled."""
        async with self._running:
            try:
                await self._advance()
            except AggregatorError as error:
                self._failed(str(error))
            except Exception as error:
                self._failed(repr(error), unexpected=True)
            else:
                self._recovered()

    async def _advance(self) -> None:
        """Until all is read: after a bulk load in several parts, so that the lease lasts, and a stop has its turn."""
        while True:
            self.leading = await self._lease.take()
            if not self.leading:
                self.idle += 1
                return
            await self._lead()
            if not self._events.more or self._stopping:
                return

    async def _lead(self) -> None:
        now_ms = self._clock()
        changes = await self._events.advance(self._index, now_ms)
        self.ticks += 1
        self.last_tick_ms = now_ms
        for change in changes:
            if change.kind == "fired":
                logger.info("Event %s fired: %s", change.event.id, change.event.reason)

    async def _hand_over(self) -> None:
        if self.leading:
            await self._events.checkpoint(self._clock())
            await self._lease.give_back()
            self.leading = False

    def _failed(self, problem: str, *, unexpected: bool = False) -> None:
        self.errors += 1
        self.leading = False
        if problem != self._problem:
            logger.error("The event detector failed and will try again: %s", problem, exc_info=unexpected)
        self._problem = problem

    def _recovered(self) -> None:
        if self._problem is not None:
            logger.info("The event detector works again.")
        self._problem = None

    def _count(self, event: JobEvent) -> None:
        if event.job_id != JOB_ID:
            return
        if event.code == EVENT_JOB_MISSED:
            self.misfires += 1
        else:
            self.overlaps += 1


async def _drained(work: Work) -> None:
    """Wait for the running turn; what takes longer is cancelled with the scheduler, and done again elsewhere."""
    try:
        async with asyncio.timeout(DRAIN_S), work.running:
            pass
    except TimeoutError:
        logger.warning("A turn of %s took longer than %g s to end and is cut off.", work.name, DRAIN_S)


async def _until_stopped(run: Callable[[], Awaitable[None]]) -> None:
    """``stop`` has told of a turn that takes too long; the scheduler would add a traceback for cancelling it."""
    with suppress(asyncio.CancelledError):
        await run()


def _schedule(
    scheduler: AsyncIOScheduler, id_: str, run: Callable[[], Awaitable[None]], seconds: float
) -> None:
    scheduler.add_job(
        partial(_until_stopped, run),
        "interval",
        seconds=seconds,
        id=id_,
        name=id_,
        # The default of one second drops ticks on a busy machine (reference/ecosystem, section 4).
        misfire_grace_time=max(1, round(seconds)),
        coalesce=True,
        max_instances=1,
    )
