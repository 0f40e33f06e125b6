"""Lease for leader election: one replica at a time does a periodic task.

Each renewal writes another value, and a replica takes over a lease whose value it has seen unchanged for
``ttl_ms`` by its own monotonic clock. The key also expires after ``ttl_ms`` by the store's clock, so that a
replica that starts later need not wait. That alone would not do: a holder that renews while the clock of the
machine is ahead, and then dies, would block every other replica until the clock has reached that time.

A lease only avoids duplicate work: two replicas may both believe that they hold it (one of them was
suspended), so the writes of the task must be safe on their own.
"""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import time
from collections.abc import Callable

from aggregator.errors import StoreUnavailable
from aggregator.store.base import Delete, Put, Store, Transaction, ValueEquals

logger = logging.getLogger(__name__)


class Lease:
    """One replica's side of the lease at ``key``; ``is_held`` as of the last ``acquire``.

    ``monotonic``: a clock in seconds that is never set. A replica that waits for the lease must call
    ``acquire`` at least once per ``ttl_ms``, like the one that holds it.
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
        """Acquire or renew the lease; False while another replica holds it.

        Raises StoreUnavailable. A repeated call is harmless: it renews.
        """
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
                await self._store.commit(
                    Transaction((ValueEquals(self._key, current),), (Delete(self._key),))
                )

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
