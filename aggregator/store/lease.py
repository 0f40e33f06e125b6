"""Lease for leader election: one replica at a time does a periodic task.

A lease expires ``ttl_ms`` after it was last acquired, so another replica takes over from one that died. It
only avoids duplicate work: two replicas may both believe that they hold it (one of them was suspended), so
the writes of the task must be safe on their own.
"""

from __future__ import annotations

import logging
import os
import secrets

from aggregator.errors import StoreUnavailable
from aggregator.store.base import Delete, Put, Store, Transaction, ValueEquals

logger = logging.getLogger(__name__)


class Lease:
    """One replica's side of the lease at ``key``; ``is_held`` as of the last ``acquire``."""

    def __init__(self, store: Store, key: bytes, ttl_ms: int) -> None:
        self._store, self._key, self._ttl_ms = store, key, ttl_ms
        self._token = f"{os.getpid()}:{secrets.token_hex(8)}".encode()
        self.is_held = False

    async def acquire(self) -> bool:
        """Acquire or renew the lease in one round trip; False while another replica holds it.

        Raises StoreUnavailable. A repeated call is harmless: it renews.
        """
        self.is_held = False
        put = (Put(self._key, self._token, self._ttl_ms),)
        acquire = Transaction((ValueEquals(self._key, None),), put)
        renew = Transaction((ValueEquals(self._key, self._token),), put)
        self.is_held = () in await self._store.commit_many((acquire, renew))
        return self.is_held

    async def release(self) -> None:
        """Free the lease for another replica immediately. Idempotent. Raises StoreUnavailable."""
        if self.is_held:
            self.is_held = False
            await self._store.commit(
                Transaction((ValueEquals(self._key, self._token),), (Delete(self._key),))
            )

    async def close(self) -> None:
        """Release the lease; if the store is unavailable, it expires."""
        try:
            await self.release()
        except StoreUnavailable:
            logger.debug("cannot release the lease %s, it will expire", self._key.decode())
