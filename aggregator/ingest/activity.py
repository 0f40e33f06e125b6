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
from aggregator.ingest.throttle import CALM_S
from aggregator.store.base import Put, Store

TELL_S, ASK_S = 1.0, 0.5


class Presence:
    """One process's view of them."""

    def __init__(self, store: Store, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock_s = store, clock_s
        self._newest_s = self._told_s = self._asked_s = -math.inf
        self._note: bytes | None = None
        self._telling: asyncio.Task[None] | None = None

    def arrived(self) -> None:
        """An article came by itself. Others hear of it while it is worked on."""
        self._newest_s = self._clock_s()
        if self._newest_s - self._told_s >= TELL_S and (self._telling is None or self._telling.done()):
            self._told_s = self._newest_s
            self._telling = asyncio.ensure_future(self._tell())

    async def since_s(self) -> float:
        """How long ago the newest came, in seconds; inf: long ago, or never."""
        now_s = self._clock_s()
        if now_s - self._newest_s >= ASK_S and now_s - self._asked_s >= ASK_S:
            self._asked_s = now_s
            await self._ask(now_s)
        return now_s - self._newest_s

    async def close(self) -> None:
        """No more is told. Idempotent."""
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    async def _tell(self) -> None:
        try:
            await self._store.put([Put(keys.SINGLES, secrets.token_bytes(8), int(CALM_S * 1000))])
        except StoreUnavailable:
            return

    async def _ask(self, now_s: float) -> None:
        try:
            note = (await self._store.read([keys.SINGLES]))[0]
        except StoreUnavailable:
            return
        if note is not None and note != self._note:
            self._newest_s = now_s
        self._note = note
