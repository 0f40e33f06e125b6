"""Index maintenance: retention, compaction and rehash of all spaces, as a sequence of short steps.

The caller may pause or stop between any two steps. Progress is in the store, so another process continues
where this one stopped. Two processes at once are harmless; they do some work twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from aggregator.index.compaction import Compactor
from aggregator.index.expiry_sweep import ExpirySweep
from aggregator.index.index import Index
from aggregator.index.retention import RetentionJob
from aggregator.index.sketch_rehash import SketchRehash


class SegmentMaintenance:
    """Runs the jobs ``retention``, ``compactor``, ``rehash`` and ``sweep``; their counters are for metrics.

    ``expiring_prefixes``: see ``ExpirySweep``.
    """

    def __init__(
        self,
        index: Index,
        compactor: Compactor | None = None,
        expiring_prefixes: Mapping[bytes, int] | None = None,
        rehash: SketchRehash | None = None,
    ) -> None:
        self._spaces = index.all_spaces
        self.retention = RetentionJob(index.store, index.segments, index.retention)
        self.rehash = rehash or SketchRehash(index.store, index.segments)
        self.compactor = compactor or Compactor(index)
        self.sweep = ExpirySweep(index, expiring_prefixes)

    async def steps(self, trusted_ms: int) -> AsyncIterator[None]:
        """All work that is due at this trusted time (``trusted_time.py``), space by space, then the sweep."""
        for space in self._spaces:
            async for _ in self.retention.steps(space, trusted_ms):
                yield
            async for _ in self.compactor.steps(space, trusted_ms):
                yield
            async for _ in self.rehash.steps(space):
                yield
        async for _ in self.sweep.steps(trusted_ms):
            yield

    async def run(self, trusted_ms: int) -> None:
        """Run all steps."""
        async for _ in self.steps(trusted_ms):
            pass
