"""Activity beacon: processes that share a store learn from each other that interactive articles arrive.

A process that receives interactive articles knows; a bulk import in another process does not. The former sets
a marker key in the store, at most once per ``PUBLISH_INTERVAL_S``, which expires unless it is renewed. The
latter reads it at most once per ``POLL_INTERVAL_S``. Markers are random and only compared with the one read
before, so clocks of two machines need not agree. An unavailable store is ignored: the work itself reports it.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Callable

from aggregator.errors import StoreUnavailable
from aggregator.ingest.throttle import QUIET_AFTER_S
from aggregator.store.base import Put, Store

PUBLISH_INTERVAL_S, POLL_INTERVAL_S = 1.0, 0.5
BEACON_KEY = b"{singles}"


class ActivityBeacon:
    """Interactive activity of this process and, with a delay of seconds, of others on ``store``."""

    def __init__(self, store: Store, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock_s = store, clock_s
        self._latest_s = self._published_s = self._polled_s = -math.inf
        self._marker: bytes | None = None
        self._publish_task: asyncio.Task[None] | None = None

    def record_arrival(self) -> None:
        """An interactive article arrived here; other processes are notified in the background."""
        self._latest_s = self._clock_s()
        if self._latest_s - self._published_s >= PUBLISH_INTERVAL_S and (
            self._publish_task is None or self._publish_task.done()
        ):
            self._published_s = self._latest_s
            self._publish_task = asyncio.ensure_future(self._publish())

    async def seconds_since_last(self) -> float:
        """Seconds since the newest interactive article arrived in any process; inf if none did."""
        now_s = self._clock_s()
        if now_s - self._latest_s >= POLL_INTERVAL_S and now_s - self._polled_s >= POLL_INTERVAL_S:
            self._polled_s = now_s
            await self._poll(now_s)
        return now_s - self._latest_s

    async def close(self) -> None:
        """Stop publishing. Idempotent."""
        if self._publish_task is not None:
            self._publish_task.cancel()
            await asyncio.gather(self._publish_task, return_exceptions=True)

    async def _publish(self) -> None:
        try:
            await self._store.put([Put(BEACON_KEY, secrets.token_bytes(8), int(QUIET_AFTER_S * 1000))])
        except StoreUnavailable:
            return

    async def _poll(self, now_s: float) -> None:
        try:
            marker = (await self._store.read([BEACON_KEY]))[0]
        except StoreUnavailable:
            return
        if marker is not None and marker != self._marker:
            self._latest_s = now_s
        self._marker = marker
