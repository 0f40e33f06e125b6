"""Which replica does a work that only one should do at a time? The one that holds the lease on it.

A lease ends by itself ``ttl_ms`` after it was last taken, so the work of a replica that died goes on elsewhere.
It only saves work: two replicas that both believe they hold it (one of them slept) must do no harm, which is the
matter of what they commit, never of the lease.
"""

from __future__ import annotations

import logging
import os
import secrets

from aggregator.errors import StoreUnavailable
from aggregator.store.base import Store

logger = logging.getLogger(__name__)


class Lease:
    """One replica's side of the lease at ``key``. ``held``: as of the last ``take``."""

    def __init__(self, store: Store, key: bytes, ttl_ms: int) -> None:
        self._store, self._key, self._ttl_ms = store, key, ttl_ms
        self._token = f"{os.getpid()}:{secrets.token_hex(8)}".encode()
        self.is_held = False

    async def acquire(self) -> bool:
        """Take or renew it; False while another replica holds it. Raises StoreUnavailable."""
        self.is_held = False
        self.is_held = await self._store.acquire(self._key, self._token, self._ttl_ms)
        return self.is_held

    async def release(self) -> None:
        """Let another replica take it at once. Idempotent. Raises StoreUnavailable."""
        if self.is_held:
            self.is_held = False
            await self._store.release(self._key, self._token)

    async def close(self) -> None:
        """``give_back``, unless the store is away: then it runs out by itself."""
        try:
            await self.release()
        except StoreUnavailable:
            logger.debug("the lease %s runs out by itself", self._key.decode())
