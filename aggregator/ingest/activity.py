"""Do articles arrive one by one, here or in another process on this store?

A process that takes such articles knows; a bulk load of another process, which writes into the same store, does not.
So the former leaves a note in the store, at most once in ``TELL_S``, which vanishes when it is not renewed, and the
latter looks for it once in ``ASK_S``. Notes are compared, not read: clocks of two machines need not agree. Where the
store is away nobody is told, and nothing fails for it.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Callable

from aggregator.errors import StoreUnavailable
from aggregator.index import keys
from aggregator.ingest.throttle import QUIET_AFTER_S
from aggregator.store.base import Put, Store

PUBLISH_INTERVAL_S, POLL_INTERVAL_S = 1.0, 0.5


class ActivityBeacon:
    """One process's view of them."""

    def __init__(self, store: Store, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock_s = store, clock_s
        self._latest_s = self._published_s = self._polled_s = -math.inf
        self._marker: bytes | None = None
        self._publish_task: asyncio.Task[None] | None = None

    def record_arrival(self) -> None:
        """An article came by itself. Others hear of it while it is worked on."""
        self._latest_s = self._clock_s()
        if self._latest_s - self._published_s >= PUBLISH_INTERVAL_S and (
            self._publish_task is None or self._publish_task.done()
        ):
            self._published_s = self._latest_s
            self._publish_task = asyncio.ensure_future(self._publish())

    async def seconds_since_last(self) -> float:
        """How long ago the newest came, in seconds; inf: long ago, or never."""
        now_s = self._clock_s()
        if now_s - self._latest_s >= POLL_INTERVAL_S and now_s - self._polled_s >= POLL_INTERVAL_S:
            self._polled_s = now_s
            await self._poll(now_s)
        return now_s - self._latest_s

    async def close(self) -> None:
        """No more is told. Idempotent."""
        if self._publish_task is not None:
            self._publish_task.cancel()
            await asyncio.gather(self._publish_task, return_exceptions=True)

    async def _publish(self) -> None:
        try:
            await self._store.put(
                [Put(keys.INTERACTIVE_BEACON, secrets.token_bytes(8), int(QUIET_AFTER_S * 1000))]
            )
        except StoreUnavailable:
            return

    async def _poll(self, now_s: float) -> None:
        try:
            note = (await self._store.read([keys.INTERACTIVE_BEACON]))[0]
        except StoreUnavailable:
            return
        if note is not None and note != self._marker:
            self._latest_s = now_s
        self._marker = note
