"""Index maintenance: compaction by one leader replica, in short runs.

Each run acquires or renews a lease, works for at most ``TIME_BUDGET_MS`` and leaves the rest to the next run,
so requests wait for at most one chunk of work. Progress is stored (``compaction.py``): if the leader
dies, another replica resumes there. In each run every replica reads what the leader changed: the segments and
the floor. A failed run is retried by the next one; its reason is logged when it changes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

from aggregator.errors import StoreUnavailable
from aggregator.index import Index
from aggregator.index.upkeep.clock_guard import ClockGuard
from aggregator.index.upkeep.maintenance import SegmentMaintenance
from aggregator.index.upkeep.statistics import SpaceStatistics, count_segments
from aggregator.store.periodic_task import PeriodicTask
from aggregator.time_units import MINUTE_MS

MAINTENANCE_LEASE_KEY = b"{upkeep}leader"
MAINTENANCE_INTERVAL_S = 5.0
TIME_BUDGET_MS = 250
STATISTICS_INTERVAL_MS = MINUTE_MS


class IndexMaintenance(PeriodicTask):
    """Maintenance by one replica, by the trusted time of ``clock_guard``; ``clock`` measures its slices.

    ``expiring_prefixes``: see ``index.expiry_sweep``.
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
        super().__init__("index maintenance", MAINTENANCE_INTERVAL_S, index.store, MAINTENANCE_LEASE_KEY)
        self._index = index
        self._clock = clock
        self._clock_guard = clock_guard or ClockGuard(index, clock)
        self._time_budget_ms = time_budget_ms
        self._pending_steps: AsyncIterator[None] | None = None
        self.jobs = SegmentMaintenance(index, expiring_prefixes=expiring_prefixes)
        self.statistics: dict[str, SpaceStatistics] = {}
        self._statistics_ms = -STATISTICS_INTERVAL_MS

    async def acquire(self) -> bool:
        """As of any task; not under an implausible clock, whose observation comes first."""
        if await self._clock_guard.observe() is None:
            return await super().acquire()
        await self.lease.release()
        self.is_leader = False
        return False

    async def lead(self) -> None:
        """One slice of work; none before the first article."""
        await self._compact()
        await self._refresh_statistics()

    async def follow(self) -> None:
        """Read what the leader changed."""
        self._pending_steps = None
        await self._refresh_segments()
        await self._refresh_statistics()

    def reset(self) -> None:
        """Begin again after a failure."""
        self._pending_steps = None

    async def refresh(self) -> None:
        """Read what runs of other processes changed; does nothing if the store is unavailable."""
        with suppress(StoreUnavailable):
            await self._refresh_segments()

    async def _compact(self) -> None:
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
