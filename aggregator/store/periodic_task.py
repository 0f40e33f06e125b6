"""Periodic task that one replica at a time, the leader, carries out: lease, counters, logging of failures.

A failed run is retried by the next one; its reason is logged when it changes. The lease only avoids duplicate
work, so what a task writes must be safe on its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aggregator.log_limits import ChangeFilter
from aggregator.store.base import Store
from aggregator.store.lease import Lease

LEASE_TTL_INTERVALS = 3

logger = logging.getLogger(__name__)


class PeriodicTask:
    """Base of the periodic tasks; a subclass implements ``lead``, and may implement ``follow`` and ``reset``.

    ``lease_ms``: by default three intervals; more for runs that may take long. ``pause_reason`` returns why
    this replica must not work now, None if it may: then another one can.

    ``is_leader`` as of the last run. Counters since start: ``runs`` as leader, ``skipped`` (another replica
    leads), ``errors``.
    """

    def __init__(
        self,
        name: str,
        interval_s: float,
        store: Store,
        lease_key: bytes,
        *,
        lease_ms: int | None = None,
        pause_reason: Callable[[], Awaitable[str | None]] | None = None,
    ) -> None:
        self.name, self.interval_s = name, interval_s
        self.lease = Lease(store, lease_key, lease_ms or round(LEASE_TTL_INTERVALS * interval_s * 1000))
        self.run_lock = asyncio.Lock()
        self.is_leader = False
        self.runs = self.skipped = self.errors = 0
        self._pause_reason = pause_reason
        self._problems, self._pauses = ChangeFilter(), ChangeFilter()

    async def lead(self) -> None:
        """One run as leader."""
        raise NotImplementedError

    async def follow(self) -> None:
        """One run while another replica leads, or while this one pauses."""

    def reset(self) -> None:
        """Drop what a failed run may have left incomplete."""

    async def run_once(self) -> None:
        """One run. Never raises, except when cancelled."""
        async with self.run_lock:
            try:
                if await self.acquire():
                    await self.lead()
                else:
                    await self.follow()
            except Exception as error:
                self.errors += 1
                self.is_leader = False
                self.reset()
                self._problems.log_retry(logger, self.name, error)
            else:
                if self._problems.clear():
                    logger.info("%s works again", self.name)

    async def acquire(self) -> bool:
        """Acquire or renew the lease; False while another replica leads or this one must pause."""
        reason = await self._pause_reason() if self._pause_reason is not None else None
        if reason is not None:
            if self._pauses.is_new("paused"):
                logger.warning("%s pauses: %s", self.name, reason)
            await self.lease.release()
            self.is_leader = False
            return False
        if self._pauses.clear():
            logger.warning("%s continues", self.name)
        self.is_leader = await self.lease.acquire()
        self.runs += self.is_leader
        self.skipped += not self.is_leader
        return self.is_leader

    async def close(self) -> None:
        """Release the lease so that another replica can continue immediately. Idempotent."""
        await self.lease.close()
