"""The fingerprint index: what is stored about articles, and how near-duplicates of an article are found.

``Index`` composes the parts; ``keys.py`` lists every key. A batch is decided on a **snapshot**, the values of
all keys that its lookups read; the writes of each article are applied to it before the next is decided. So a
batch gives the verdicts of posting its articles one by one, with two reads per batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from aggregator.index import untrusted
from aggregator.index.article_stream import ArrivalCounts, ArticleStream
from aggregator.index.articles import Articles, StoredArticle
from aggregator.index.bindings import Bindings
from aggregator.index.candidates import RelatedLookup
from aggregator.index.lookup import RADIUS_BITS, Lookup, Probe
from aggregator.index.records import Records
from aggregator.index.segments import SEGMENT_MAX_ARTICLES, Retention, Segments
from aggregator.index.snapshot import Snapshot
from aggregator.index.takedowns import Takedowns
from aggregator.index.transactions import SegmentTransactions
from aggregator.store.base import Store
from aggregator.store.identity import StoreMemory
from aggregator.store.optimistic import StoredValue

__all__ = ["RADIUS_BITS", "Index", "Probe", "Snapshot", "StoredArticle"]


class Index:
    """The index of several spaces over one store.

    ``spaces``: the serving spaces, e.g. ("en.3f2a", "zh.91c0", "xx.0001"), ``shadow_spaces``: written but
    not read (``ingest/dual_write.py``). ``retention_ms``: how long articles are kept at least; None:
    indefinitely.

    Parts, described by their classes: ``lookup`` finds near-duplicate candidates, ``related`` those for
    readers; ``articles`` and ``bindings`` are by id, ``records`` by number, ``stream`` in commit order;
    ``transactions(stack)`` writes to the writable segment of a ``SegmentStack``.
    """

    def __init__(
        self,
        store: Store,
        spaces: Sequence[str],
        *,
        retention_ms: int | None = None,
        shadow_spaces: Sequence[str] = (),
        segment_max_articles: int = SEGMENT_MAX_ARTICLES,
    ) -> None:
        self.store = store
        self.spaces = tuple(spaces)
        self.shadow_spaces = tuple(shadow_spaces)
        self.all_spaces = self.spaces + self.shadow_spaces
        self.retention = Retention(retention_ms)
        self.segments = Segments(store, segment_max_articles)
        self.records = Records(store)
        self.bindings = Bindings(self.segments, self.spaces)
        self.transactions = partial(
            SegmentTransactions,
            shared_entries_grace_ms=self.retention.shared_entries_grace_ms,
            sampling_exponent=self.segments.sampling_exponent,
        )
        self.articles = Articles(store, self.segments, self.records, self.bindings, self.transactions)
        self.takedowns = Takedowns(store, retention_ms)
        self.untrusted = StoredValue(store, untrusted.KEY, untrusted.FORMAT)
        self.memory = StoreMemory()
        self.lookup = Lookup(store, self.segments, self.spaces, self.takedowns, self.memory)
        self.related = RelatedLookup(self.lookup, self.segments, self.spaces)
        self.stream = ArticleStream(store, self.segments, self.all_spaces)
        self.arrival_counts = ArrivalCounts(store, self.segments, self.stream)
