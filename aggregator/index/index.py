"""The fingerprint index: everything the service stores about articles, composed of a few objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aggregator.index.arrival_counts import ArrivalCounts
from aggregator.index.article_stream import ArticleStream
from aggregator.index.articles import Articles
from aggregator.index.bindings import Bindings
from aggregator.index.blocks import DEFAULT_PLAN, BlockPlan
from aggregator.index.candidates import RelatedLookup
from aggregator.index.lookup import Lookup
from aggregator.index.records import Records, StoredArticles
from aggregator.index.segments import SEGMENT_MAX_ARTICLES, Segments
from aggregator.index.snapshot import Snapshot
from aggregator.index.transactions import SegmentTransactions
from aggregator.index.upkeep.retention import Retention
from aggregator.store.base import Store


class Index:
    """The index of several spaces over one store.

    ``spaces``: the serving spaces, e.g. ("en.3f2a", "zh.91c0", "xx.0001"), whose fingerprints are cut by
    ``plan``. ``shadow_plans``: spaces that are written but not read (``ingest/dual_write.py``), each with its
    block plan. ``retention_ms``: how long articles are kept at least; None: indefinitely.

    Parts:

    * ``lookup``: near-duplicate candidates of articles, and the checks that make a decision on them safe
    * ``related``: candidates for readers, by bits and by terms
    * ``bindings``: the version and verdict of an id
    * ``articles``: stored articles by id: read, group of duplicates, update, delete
    * ``stored_articles``: all stored articles, one after another
    * ``records``: records and texts by article number
    * ``stream``: the articles in commit order; ``arrival_counts``: how many per minute
    * ``segments``: the segments of each space
    * ``retention``: the floor, below which articles have expired
    """

    def __init__(
        self,
        store: Store,
        spaces: Sequence[str],
        *,
        retention_ms: int | None = None,
        plan: BlockPlan = DEFAULT_PLAN,
        shadow_plans: Mapping[str, BlockPlan] | None = None,
        segment_max_articles: int = SEGMENT_MAX_ARTICLES,
    ) -> None:
        self.store = store
        self.spaces = tuple(spaces)
        self.shadow_spaces = tuple(shadow_plans or ())
        self.all_spaces = self.spaces + self.shadow_spaces
        self._plan = plan
        self._shadow_plans = dict(shadow_plans or {})
        self.retention = Retention(retention_ms)
        self.segments = Segments(store, segment_max_articles)
        self.records = Records(store)
        self.bindings = Bindings(self.segments, self.spaces)
        self.articles = Articles(store, self.segments, self.records, self.bindings, self.transactions)
        self.lookup = Lookup(store, self.segments, self.spaces, self.plan)
        self.related = RelatedLookup(self.lookup, self.segments, self.spaces)
        self.stored_articles = StoredArticles(store, self.segments, self.plan)
        self.stream = ArticleStream(store, self.segments, self.all_spaces)
        self.arrival_counts = ArrivalCounts(store, self.segments, self.all_spaces)

    def plan(self, space: str) -> BlockPlan:
        """The block plan of a space."""
        return self._shadow_plans.get(space, self._plan)

    def transactions(self, snapshot: Snapshot, space: str) -> SegmentTransactions:
        """The transactions of the writable segment that ``snapshot`` was read from."""
        stack = snapshot.stacks[space]
        return SegmentTransactions(
            stack.writable_tag,
            self.plan(space),
            is_only_segment=stack.has_single_segment,
            shared_entries_grace_ms=self.retention.shared_entries_grace_ms,
            sampling_exponent=self.segments.sampling_exponent,
            sketch_width=stack.sketch_widths[-1],
        )
