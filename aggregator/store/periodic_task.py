"""Periodic task that one replica at a time, the leader, carries out: lease, counters, logging of failures.

A lease only avoids duplicate work: two replicas may both believe that they hold it (one of them was
suspended), so what a task writes must be safe on its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable

from aggregator.errors import AggregatorError, StoreUnavailable
from aggregator.log_limits import ChangeFilter
from aggregator.store.base import Delete, Put, Store, Transaction, ValueEquals

LEASE_TTL_INTERVALS = RECOVERED_RUNS = 3

logger = logging.getLogger(__name__)


async def repeat(interval_s: float, step: Callable[[], Awaitable[object]]) -> None:
    """Run ``step`` every interval, until cancelled; one that fails is tried again at the next."""
    while True:
        await asyncio.sleep(interval_s)
        with contextlib.suppress(AggregatorError):
            await step()


class Lease:
    """One replica's side of the lease at ``key``; ``is_held`` as of the last ``acquire``.

    Each renewal writes another value, and a replica takes over a lease whose value it has seen unchanged for
    ``ttl_ms`` by its own ``monotonic`` clock (in seconds); so it must call ``acquire`` at least that often.
    The key also expires after ``ttl_ms`` by the store's clock, so that a replica that starts later need not
    wait. That alone would not do: a holder that renews while the clock of the machine is ahead, and then
    dies, would block every other replica until the clock has reached that time.
    """

    def __init__(
        self, store: Store, key: bytes, ttl_ms: int, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._key, self._ttl_ms = store, key, ttl_ms
        self._monotonic = monotonic
        self._token = f"{os.getpid()}:{secrets.token_hex(8)}:".encode()
        self._renewals = itertools.count()
        self._seen: bytes | None = None  # value of another replica
        self._seen_since_s = 0.0  # by ``monotonic``
        self.is_held = False

    async def acquire(self) -> bool:
        """Acquire or renew the lease; False while another replica holds it. Raises StoreUnavailable."""
        self.is_held = False
        current = (await self._store.read([self._key]))[0]
        if current is not None and not self._may_replace(current):
            return False
        renewed = b"%s%d" % (self._token, next(self._renewals))
        renew = Transaction((ValueEquals(self._key, current),), (Put(self._key, renewed, self._ttl_ms),))
        self.is_held = await self._store.commit(renew) == ()
        return self.is_held

    async def release(self) -> None:
        """Free the lease for another replica immediately. Idempotent. Raises StoreUnavailable."""
        if self.is_held:
            self.is_held = False
            current = (await self._store.read([self._key]))[0]
            if current is not None and current.startswith(self._token):
                held = ValueEquals(self._key, current)
                await self._store.commit(Transaction((held,), (Delete(self._key),)))

    async def close(self) -> None:
        """Release the lease; if the store is unavailable, it expires."""
        try:
            await self.release()
        except StoreUnavailable:
            logger.debug("cannot release the lease %s, it will expire", self._key.decode())

    def _may_replace(self, current: bytes) -> bool:
        """Whether ``current`` is this replica's own value, or one that has not been renewed in time."""
        if current.startswith(self._token):
            return True
        now_s = self._monotonic()
        if current != self._seen:
            self._seen, self._seen_since_s = current, now_s
        return (now_s - self._seen_since_s) * 1000 >= self._ttl_ms


class PeriodicTask:
    """Base of the periodic tasks; a subclass implements ``lead``, and may implement ``follow`` and ``reset``.

    A failed run is retried by the next one; its reason is logged when it changes. ``lease_ms``: by default
    three intervals; more for runs that may take long. ``pause_reason`` returns why this replica must not work
    now, None if it may. ``is_leader`` as of the last run. Counters since start: ``runs`` as leader,
    ``skipped`` (another replica leads), ``errors``.
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
        self.runs = self.skipped = self.errors = self._successes = 0
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
                self._successes, self.is_leader = 0, False
                self.reset()
                expected = isinstance(error, AggregatorError)
                if self._problems.is_new(str(error) if expected else repr(error)):
                    text = "%s failed and will be retried: %s"
                    logger.warning(text, self.name, error, exc_info=not expected)
            else:
                self._successes += 1  # in a row: a store that is full takes some writes between others
                if self._successes >= RECOVERED_RUNS and self._problems.clear():
                    logger.info("%s works again", self.name)

    async def acquire(self) -> bool:
        """Acquire or renew the lease; False while another replica leads or this one must pause."""
        reason = await self._pause_reason() if self._pause_reason is not None else None
        if reason is not None:
            if self._pauses.is_new("paused"):
                logger.warning("%s pauses: %s", self.name, reason)
            await self.abdicate()
            return False
        if self._pauses.clear():
            logger.warning("%s continues", self.name)
        self.is_leader = await self.lease.acquire()
        self.runs += self.is_leader
        self.skipped += not self.is_leader
        return self.is_leader

    async def abdicate(self) -> None:
        """Release the lease. Raises StoreUnavailable."""
        await self.lease.release()
        self.is_leader = False

    async def close(self) -> None:
        """Release the lease so that another replica can continue immediately. Idempotent."""
        await self.lease.close()
