"""When is the upkeep of the index done, and by whom? By one replica, in short turns.

Every turn takes or renews a lease, works for ``TURN_MS`` at most, and leaves the rest to the next turn: so
requests wait for one chunk of work at the longest. What a turn did is in the store (``index/upkeep.py``); when
this replica dies, another one goes on there. All replicas learn in each turn what the leader changed: which
segments there are, and the floor. A turn that fails is tried again; its reason is logged when it changes.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from aggregator.errors import AggregatorError, StoreUnavailable
from aggregator.index import Index
from aggregator.index.compaction import Upkeep
from aggregator.index.statistics import Census, count
from aggregator.store.lease import Lease

LEASE_KEY = b"{upkeep}leader"
TURN_S = 5.0
TURN_MS = 250
LEASE_TURNS = 3
COUNT_MS = 60_000

logger = logging.getLogger(__name__)


class Housekeeping:
    """The upkeep of one replica. ``turns`` worked as leader, ``idle`` ones of others, ``errors``: since start."""

    def __init__(self, index: Index, clock: Callable[[], int], *, turn_ms: int = TURN_MS) -> None:
        self._index = index
        self._clock = clock
        self._turn_ms = turn_ms
        self._lease = Lease(index.store, LEASE_KEY, int(LEASE_TURNS * TURN_S * 1000))
        self._work: AsyncIterator[None] | None = None
        self._problem = ""
        self.upkeep = Upkeep(index)
        self.counts: dict[str, Census] = {}
        self._counted_ms = -COUNT_MS
        self.turns = self.idle = self.errors = 0

    async def turn(self) -> None:
        """One turn. Never raises, except when cancelled."""
        try:
            await self._turn()
            await self._count()
        except AggregatorError as error:
            self.errors += 1
            self._work = None
            if str(error) != self._problem:
                logger.warning("The upkeep of the index failed and will be tried again: %s", error)
            self._problem = str(error)
        else:
            self._problem = ""

    async def follow(self) -> None:
        """What a process that does no turns must learn of them. While the store is away, nothing."""
        with suppress(StoreUnavailable):
            await self._learn()

    async def close(self) -> None:
        """Let another replica go on at once. Idempotent."""
        await self._lease.close()

    async def _turn(self) -> None:
        if not await self._lease.take():
            self.idle += 1
            self._work = None
            await self._learn()
            return
        self.turns += 1
        started_ms = self._clock()
        self._work = self._work or self._all(started_ms)
        async for _ in self._work:
            if not 0 <= self._clock() - started_ms < self._turn_ms:
                return
        self._work = None

    async def _learn(self) -> None:
        """Which segments there are, and the floor."""
        for space in self._index.journals:
            await self._index.segments.refresh(space)

    async def _count(self) -> None:
        """What the metrics of this replica say of the segments; now and then."""
        now_ms = self._clock()
        if not 0 <= now_ms - self._counted_ms < COUNT_MS:
            self._counted_ms = now_ms
            self.counts = {space: await count(self._index, space) for space in self._index.spaces}

    async def _all(self, now_ms: int) -> AsyncIterator[None]:
        for space in self._index.journals:
            async for _ in self.upkeep.chunks(space, now_ms):
                yield
