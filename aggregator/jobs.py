"""When does the detector run, and the upkeep of the index? A scheduler tick on every replica; one of them leads.

Each tick takes or renews a lease (three intervals long) and, if it got it, lets ``Events`` read on. The lease
only saves work: that nothing is doubled when two replicas believe they lead is the compare-and-set of
``events.py``. A tick that fails is tried again by the next; its reason is logged when it changes, not every
time. APScheduler 3.11 cancels running coroutines on shutdown, so ``stop`` waits for the tick first.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from aggregator.bursts import Change
from aggregator.errors import AggregatorError, StoreUnavailable
from aggregator.events import Events, Source

LEASE_KEY = b"{events}leader"
LEASE_INTERVALS = 3
DRAIN_S = 2.0
JOB_ID = "events"

logger = logging.getLogger(__name__)


class Leases(Protocol):
    """The part of a store that leases are taken from."""

    async def acquire(self, key: bytes, token: bytes, ttl_ms: int) -> bool: ...

    async def release(self, key: bytes, token: bytes) -> None: ...


class Jobs:
    """The scheduled work of one replica.

    Counters, since start: ``ticks`` finished as leader, ``idle`` (another replica leads), ``misfires`` (a
    tick came over an interval late), ``overlaps`` (the one before was still running), ``errors``.
    ``leading`` and ``last_tick_ms`` are the present state. ``beside``: further work, each with its pause in
    seconds; it takes leases of its own and never raises.
    """

    def __init__(
        self,
        events: Events,
        index: Source,
        clock: Callable[[], int],
        tick_seconds: float,
        *,
        leases: Leases | None = None,
        on_changes: Callable[[list[Change]], Awaitable[None]] | None = None,
        upkeep: Callable[[], Awaitable[None]] | None = None,
        upkeep_seconds: float = 5.0,
        beside: Sequence[tuple[Callable[[], Awaitable[None]], float]] = (),
    ) -> None:
        self._events = events
        self._index = index
        self._clock = clock
        self._interval_s = tick_seconds
        self._leases = leases or events.store
        self._on_changes = on_changes
        self._upkeep = upkeep
        self._upkeep_s = upkeep_seconds
        self._beside = beside
        self._token = f"{os.getpid()}:{secrets.token_hex(8)}".encode()
        self._scheduler: AsyncIOScheduler | None = None
        self._running, self._keeping = asyncio.Lock(), asyncio.Lock()
        self._problem: str | None = None
        self.ticks = self.idle = self.misfires = self.overlaps = self.errors = 0
        self.leading = False
        self.last_tick_ms = 0

    def start(self) -> None:
        """Begin to tick; needs a running event loop. Starting twice is an error of the caller."""
        if self._scheduler is not None:
            raise RuntimeError("The jobs are running already.")
        scheduler = AsyncIOScheduler(timezone="UTC")
        scheduler.add_listener(self._count, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        _schedule(scheduler, JOB_ID, self.tick, self._interval_s)
        if self._upkeep is not None:
            _schedule(scheduler, "upkeep", self._keep_up, self._upkeep_s)
        for run, seconds in self._beside:
            _schedule(scheduler, run.__qualname__, run, seconds)
        scheduler.start()
        self._scheduler = scheduler

    async def stop(self) -> None:
        """No new ticks; wait for the running one, save what it is ahead, give the lease back. Idempotent."""
        scheduler, self._scheduler = self._scheduler, None
        if scheduler is None:
            return
        scheduler.pause()
        try:
            async with asyncio.timeout(DRAIN_S), self._running, self._keeping:
                await self._hand_over()
        except (TimeoutError, StoreUnavailable) as error:
            logger.warning("The event detector did not stop in order: %s", error or "a tick took too long")
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

    async def _keep_up(self) -> None:
        assert self._upkeep is not None
        async with self._keeping:
            await self._upkeep()

    async def _advance(self) -> None:
        lease_ms = int(LEASE_INTERVALS * self._interval_s * 1000)
        self.leading = await self._leases.acquire(LEASE_KEY, self._token, lease_ms)
        if not self.leading:
            self.idle += 1
            return
        now_ms = self._clock()
        changes = await self._events.advance(self._index, now_ms)
        self.ticks += 1
        self.last_tick_ms = now_ms
        for change in changes:
            if change.kind == "fired":
                logger.info("Event %s fired: %s", change.event.id, change.event.reason)
        if changes and self._on_changes is not None:
            await self._on_changes(changes)

    async def _hand_over(self) -> None:
        if self.leading:
            await self._events.checkpoint(self._clock())
            await self._leases.release(LEASE_KEY, self._token)
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


def _schedule(
    scheduler: AsyncIOScheduler, id_: str, run: Callable[[], Awaitable[None]], seconds: float
) -> None:
    scheduler.add_job(
        run,
        "interval",
        seconds=seconds,
        id=id_,
        # The default of one second drops ticks on a busy machine (reference/ecosystem, section 4).
        misfire_grace_time=max(1, round(seconds)),
        coalesce=True,
        max_instances=1,
    )
