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
from aggregator.index.compaction import Compactor
from aggregator.index.statistics import SpaceStatistics, count_segments
from aggregator.store.lease import Lease

MAINTENANCE_LEASE_KEY = b"{upkeep}leader"
MAINTENANCE_INTERVAL_S = 5.0
TIME_BUDGET_MS = 250
LEASE_TTL_INTERVALS = 3
STATISTICS_INTERVAL_MS = 60_000

logger = logging.getLogger(__name__)


class IndexMaintenance:
    """The upkeep of one replica. ``turns`` worked as leader, ``idle`` ones of others, ``errors``: since start."""

    def __init__(
        self, index: Index, clock: Callable[[], int], *, time_budget_ms: int = TIME_BUDGET_MS
    ) -> None:
        self._index = index
        self._clock = clock
        self._time_budget_ms = time_budget_ms
        self._lease = Lease(
            index.store, MAINTENANCE_LEASE_KEY, int(LEASE_TTL_INTERVALS * MAINTENANCE_INTERVAL_S * 1000)
        )
        self._pending_chunks: AsyncIterator[None] | None = None
        self._last_error = ""
        self.compactor = Compactor(index)
        self.statistics: dict[str, SpaceStatistics] = {}
        self._statistics_ms = -STATISTICS_INTERVAL_MS
        self.runs = self.skipped = self.errors = 0

    async def run_once(self) -> None:
        """One turn. Never raises, except when cancelled."""
        try:
            await self._compact_if_leader()
            await self._refresh_statistics()
        except AggregatorError as error:
            self.errors += 1
            self._pending_chunks = None
            if str(error) != self._last_error:
                logger.warning("The upkeep of the index failed and will be tried again: %s", error)
            self._last_error = str(error)
        else:
            self._last_error = ""

    async def refresh(self) -> None:
        """What a process that does no turns must learn of them. While the store is away, nothing."""
        with suppress(StoreUnavailable):
            await self._refresh_segments()

    async def close(self) -> None:
        """Let another replica go on at once. Idempotent."""
        await self._lease.close()

    async def _compact_if_leader(self) -> None:
        if not await self._lease.acquire():
            self.skipped += 1
            self._pending_chunks = None
            await self._refresh_segments()
            return
        self.runs += 1
        started_ms = self._clock()
        self._pending_chunks = self._pending_chunks or self._all_chunks(started_ms)
        async for _ in self._pending_chunks:
            if not 0 <= self._clock() - started_ms < self._time_budget_ms:
                return
        self._pending_chunks = None

    async def _refresh_segments(self) -> None:
        """Which segments there are, and the floor."""
        for space in self._index.all_spaces:
            await self._index.segments.refresh(space)

    async def _refresh_statistics(self) -> None:
        """What the metrics of this replica say of the segments; now and then."""
        now_ms = self._clock()
        if not 0 <= now_ms - self._statistics_ms < STATISTICS_INTERVAL_MS:
            self._statistics_ms = now_ms
            self.statistics = {
                space: await count_segments(self._index, space) for space in self._index.spaces
            }

    async def _all_chunks(self, now_ms: int) -> AsyncIterator[None]:
        for space in self._index.all_spaces:
            async for _ in self.compactor.steps(space, now_ms):
                yield
