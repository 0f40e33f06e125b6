"""What Prometheus may know of this process. One registry per application, so tests never share.

With several worker processes each answers for itself: a scrape of the shared port meets one of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from aggregator import __version__
from aggregator.domain import Answer
from aggregator.housekeeping import Housekeeping
from aggregator.index import Index
from aggregator.store.base import StoreInfo

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Of so many articles the times are kept singly, for the health page.
RECENT = 1000
_LATENCY_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)


class Metrics:
    """All series of one application; names start with ``aggregator_``."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter(
            "aggregator_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self.latency = Histogram(
            "aggregator_request_seconds",
            "Time from request to answer.",
            ["route"],
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.articles = Counter(
            "aggregator_articles", "Articles answered, dry runs left out.", ["verdict"], registry=registry
        )
        self.rejected = Counter(
            "aggregator_articles_rejected", "Articles that could not be used.", ["code"], registry=registry
        )
        self.stages = Histogram(
            "aggregator_stage_seconds",
            "Time per article and stage.",
            ["stage"],
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.distance = Histogram(
            "aggregator_distance_bits",
            "Hamming distance to the nearest stored article, when there is one within 7 bits.",
            buckets=range(8),
            registry=registry,
        )
        self.errors = Counter(
            "aggregator_unexpected_errors", "Errors that nobody expected.", registry=registry
        )
        self.listeners = Gauge(
            "aggregator_event_listeners", "Open streams of changed events.", registry=registry
        )
        self._ready = Gauge("aggregator_store_ready", "1 while the store can serve.", registry=registry)
        self._memory = Gauge("aggregator_store_memory_bytes", "Memory the store uses.", registry=registry)
        self._decided_again = Gauge(
            "aggregator_commits_decided_again",
            "Commits that lost a race and were decided again, since start.",
            registry=registry,
        )
        self._misfires = Gauge(
            "aggregator_scheduler_misfires",
            "Ticks of the event detector that were missed.",
            registry=registry,
        )
        self._index = IndexMetrics(registry)
        info = Gauge("aggregator_info", "Version and spaces.", ["version", "space"], registry=registry)
        self._info = info
        self.recent_ms: deque[dict[str, float]] = deque(maxlen=RECENT)

    def answered(self, answer: Answer) -> None:
        """Count one stored or repeated article."""
        self.articles.labels(answer.outcome.verdict).inc()
        if answer.outcome.distance is not None:
            self.distance.observe(answer.outcome.distance)
        if answer.timings_ms:
            self.recent_ms.append(answer.timings_ms)
        for stage, ms in answer.timings_ms.items():
            self.stages.labels(stage).observe(ms / 1000)

    def exposition(
        self,
        store: StoreInfo,
        spaces: Sequence[str],
        decided_again: int,
        misfires: int,
        *,
        index: Index | None = None,
        housekeeping: Housekeeping | None = None,
    ) -> bytes:
        """The text that Prometheus reads."""
        if index is not None and housekeeping is not None:
            self._index.update(index, housekeeping, store.memory_bytes)
        self._ready.set(store.ready)
        self._memory.set(store.memory_bytes)
        self._decided_again.set(decided_again)
        self._misfires.set(misfires)
        for space in spaces:
            self._info.labels(__version__, space).set(1)
        return generate_latest(self._registry)


class IndexMetrics:
    """How full the index is, and what a look-up reads of it. What is counted here is known anyway: no scrape asks the store."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, meaning: str, *labels: str) -> Gauge:
            return Gauge(f"aggregator_index_{name}", meaning, labels, registry=registry)

        self._segments = gauge("segments", "Live segments.", "space")
        self._articles = gauge("articles", "Articles of live segments, estimated from a sample.", "space")
        self._oldest = gauge(
            "oldest_seconds", "Arrival of the oldest marked article, seconds since 1970.", "space"
        )
        self._per_article = gauge("bytes_per_article", "Memory of the store per estimated article.")
        self._lookups = gauge("lookups", "Look-ups since start.")
        self._candidates = gauge("candidates", "Bucket entries that look-ups compared, since start.")
        self._largest = gauge(
            "largest_bucket", "Entries of the largest bucket that a look-up met, since start."
        )
        self._removed = gauge("entries_removed", "Entries that compaction removed here, since start.")
        self._dropped = gauge("segments_dropped", "Segments dropped here, since start.")

    def update(self, index: Index, housekeeping: Housekeeping, memory_bytes: int) -> None:
        """Set all of them."""
        self._lookups.set(index.lookups)
        self._candidates.set(index.entries_read)
        self._largest.set(index.largest_read)
        self._removed.set(housekeeping.upkeep.done.entries_removed)
        self._dropped.set(housekeeping.upkeep.done.segments_dropped)
        for space, census in housekeeping.counts.items():
            self._segments.labels(space).set(len(census.segments))
            self._articles.labels(space).set(census.articles)
            oldest = [s.oldest_ms for s in census.segments if s.oldest_ms is not None]
            if oldest:
                self._oldest.labels(space).set(min(oldest) / 1000)
        articles = sum(census.articles for census in housekeeping.counts.values())
        if articles:
            self._per_article.set(memory_bytes / articles)
