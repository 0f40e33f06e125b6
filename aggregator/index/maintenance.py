"""Index maintenance: retention and compaction of all spaces, as a sequence of short steps.

The caller may pause or stop between any two steps. Progress is in the store, so another process continues
where this one stopped. Two processes at once are harmless; they do some work twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from aggregator.index.compaction import Compactor
from aggregator.index.index import Index
from aggregator.index.retention import RetentionJob


class SegmentMaintenance:
    """Runs the jobs ``retention`` and ``compactor``, whose counters are public, for metrics."""

    def __init__(self, index: Index, compactor: Compactor | None = None) -> None:
        self._spaces = index.all_spaces
        self.retention = RetentionJob(index.store, index.segments, index.retention)
        self.compactor = compactor or Compactor(index)

    async def steps(self, now_ms: int) -> AsyncIterator[None]:
        """All work that is due, space by space."""
        for space in self._spaces:
            async for _ in self.retention.steps(space, now_ms):
                yield
            async for _ in self.compactor.steps(space, now_ms):
                yield

    async def run(self, now_ms: int) -> None:
        """Run all steps."""
        async for _ in self.steps(now_ms):
            pass
