"""What all parts of the index share: the store, its spaces and their segments, and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aggregator.domain import article_number_at
from aggregator.index import keys
from aggregator.index.blocks import PLANS, BlockPlan
from aggregator.index.segments import SEGMENT_MAX_ARTICLES, Segments
from aggregator.index.snapshot import SegmentStack, Snapshot
from aggregator.index.transactions import SegmentTransactions
from aggregator.store.base import Store
from aggregator.time_units import DAY_MS

MAX_COMMIT_ATTEMPTS = 24


class IndexBase:
    """One store and the spaces in it.

    ``spaces``: those that are served, e.g. ("en.3f2a", "zh.91c0", "xx.0001"). ``retention_ms``: how
    long articles are kept at least (None: for ever). ``plan``: how their fingerprints are cut. ``beside``: spaces
    that are written along, each with its plan. ``segment_max_articles``: when a segment is full.
    """

    def __init__(
        self,
        store: Store,
        spaces: Sequence[str],
        *,
        retention_ms: int | None = None,
        plan: BlockPlan = PLANS["4x16"],
        shadow_plans: Mapping[str, BlockPlan] | None = None,
        segment_max_articles: int = SEGMENT_MAX_ARTICLES,
    ) -> None:
        self.store = store
        self.spaces = tuple(spaces)
        self.retention_ms = retention_ms
        self.segments = Segments(store, segment_max_articles)
        self._plan = plan
        self._shadow_plans = dict(shadow_plans or {})
        # Since start, for metrics; the latter two in entries of buckets.
        self.lookups = self.entries_read = self.largest_bucket_entries = 0

    @property
    def shadow_spaces(self) -> tuple[str, ...]:
        """Spaces that are written along and not read (``beside.py``)."""
        return tuple(self._shadow_plans)

    @property
    def all_spaces(self) -> tuple[str, ...]:
        """All of them: an article is announced in the space that decided it."""
        return self.spaces + self.shadow_spaces

    async def delete_records(self, numbers: Mapping[int, str]) -> None:
        """Remove records and texts of versions that are no longer, or never came to be, in the index."""
        await self.store.delete(
            [key for n, space in numbers.items() for key in (keys.record(space, n), keys.text(n))]
        )

    def plan(self, space: str) -> BlockPlan:
        """How fingerprints of a space are cut."""
        return self._shadow_plans.get(space, self._plan)

    @property
    def shared_entries_grace_ms(self) -> int:
        """An exact copy leans on the entries of a text that came at most so long before it.

        All are kept so much longer than promised, so that no copy outlives what it leans on.
        """
        return DAY_MS if self.retention_ms is None else min(DAY_MS, self.retention_ms // 8)

    @property
    def ttl_ms(self) -> int | None:
        """When the store may forget a key by itself: the floor has passed it by then."""
        return None if self.retention_ms is None else self.retention_ms + 2 * self.shared_entries_grace_ms

    def floor(self, stack: SegmentStack, now_ms: int) -> int:
        """Look-ups ignore numbers below it. What was forgotten once stays so, whatever the setting says now."""
        if self.retention_ms is None:
            return stack.floor
        return max(
            stack.floor, article_number_at(max(0, now_ms - self.retention_ms - self.shared_entries_grace_ms))
        )

    def transactions(self, snapshot: Snapshot, space: str) -> SegmentTransactions:
        """Builds transactions on the writable segment that a snapshot was read from."""
        layers = snapshot.stacks[space]
        return SegmentTransactions(
            layers.writable_tag,
            self.plan(space),
            self.ttl_ms,
            is_only_segment=layers.has_single_segment,
            shared_entries_grace_ms=self.shared_entries_grace_ms,
            sampling_exponent=self.segments.sampling_exponent,
        )
