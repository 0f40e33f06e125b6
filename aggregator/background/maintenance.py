"""Index maintenance: compaction by one leader replica, in short runs.

Each run acquires or renews a lease, works for at most ``TIME_BUDGET_MS`` and leaves the rest to the next run,
so requests wait for at most one chunk of work. Progress is stored (``index/compaction.py``): if the leader
dies, another replica resumes there. In each run every replica reads what the leader changed: the segments and
the floor. A failed run is retried by the next one; its reason is logged when it changes.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

from aggregator.errors import StoreUnavailable
from aggregator.index import Index
from aggregator.index.clock_guard import ClockGuard
from aggregator.index.maintenance import SegmentMaintenance
from aggregator.index.statistics import SpaceStatistics, count_segments
from aggregator.log_limits import ChangeFilter
from aggregator.store.lease import Lease
from aggregator.time_units import MINUTE_MS

MAINTENANCE_LEASE_KEY = b"{upkeep}leader"
MAINTENANCE_INTERVAL_S = 5.0
TIME_BUDGET_MS = 250
LEASE_TTL_INTERVALS = 3
STATISTICS_INTERVAL_MS = MINUTE_MS

logger = logging.getLogger(__name__)


class IndexMaintenance:
    """Maintenance by one replica, by the trusted time of ``clock_guard``; ``clock`` measures its slices.

    ``expiring_prefixes``: see ``index.expiry_sweep``.

    Counters since start: ``runs`` as leader, ``skipped`` (another replica leads), ``errors``.
    """

    def __init__(
        self,
        index: Index,
        clock: Callable[[], int],
        clock_guard: ClockGuard | None = None,
        *,
        time_budget_ms: int = TIME_BUDGET_MS,
        expiring_prefixes: Mapping[bytes, int] | None = None,
    ) -> None:
        self._index = index
        self._clock = clock
        self._clock_guard = clock_guard or ClockGuard(index, clock)
        self._time_budget_ms = time_budget_ms
        self._lease = Lease(
            index.store, MAINTENANCE_LEASE_KEY, int(LEASE_TTL_INTERVALS * MAINTENANCE_INTERVAL_S * 1000)
        )
        self._pending_steps: AsyncIterator[None] | None = None
        self._problems = ChangeFilter()
        self.jobs = SegmentMaintenance(index, expiring_prefixes=expiring_prefixes)
        self.statistics: dict[str, SpaceStatistics] = {}
        self._statistics_ms = -STATISTICS_INTERVAL_MS
        self.runs = self.skipped = self.errors = 0

    async def run_once(self) -> None:
        """One run. Never raises, except when cancelled; a failure is logged when its reason changes."""
        try:
            await self._compact_if_leader()
            await self._refresh_statistics()
        except Exception as error:
            self.errors += 1
            self._pending_steps = None
            self._problems.log_retry(logger, "index maintenance", error)
        else:
            self._problems.clear()

    async def refresh(self) -> None:
        """Read what runs of other processes changed; does nothing if the store is unavailable."""
        with suppress(StoreUnavailable):
            await self._refresh_segments()

    async def close(self) -> None:
        """Release the lease so that another replica can continue immediately. Idempotent."""
        await self._lease.close()

    async def _compact_if_leader(self) -> None:
        """One slice of work as leader; none under an implausible clock, or before the first article."""
        if await self._clock_guard.observe() is not None:
            self._pending_steps = None
            await self._lease.release()
            return
        if not await self._lease.acquire():
            self.skipped += 1
            self._pending_steps = None
            await self._refresh_segments()
            return
        self.runs += 1
        started_ms = self._clock()
        if self._pending_steps is None:
            if self._clock_guard.trusted_ms is None:
                return
            self._pending_steps = self.jobs.steps(self._clock_guard.trusted_ms)
        async for _ in self._pending_steps:
            # A negative duration is a clock that was set back: end the slice rather than run on.
            if not 0 <= self._clock() - started_ms < self._time_budget_ms:
                return
        self._pending_steps = None

    async def _refresh_segments(self) -> None:
        """Read the segments and the retention floor of every space."""
        await self._index.segments.refresh_all(self._index.all_spaces)

    async def _refresh_statistics(self) -> None:
        """Update the segment statistics for metrics, once per ``STATISTICS_INTERVAL_MS``."""
        now_ms = self._clock()
        if not 0 <= now_ms - self._statistics_ms < STATISTICS_INTERVAL_MS:
            self._statistics_ms = now_ms
            self.statistics = {
                space: await count_segments(self._index, space) for space in self._index.spaces
            }
