"""Prometheus metrics of one process, and the table of all metrics for the documentation.

Handlers update ``Metrics`` of their application; the specs in the tables read what other parts of the service
hold, at scrape time. ``peer_metrics.py`` merges the processes of a service. Only the state of the store and
the lengths of the webhook queues are read from the store, once per scrape.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from aggregator import __version__
from aggregator.dedup.policy import DEFAULT_PROFILE
from aggregator.domain import Answer, VerdictName
from aggregator.http.peer_metrics import RESTARTS_HELP, RESTARTS_LABEL, RESTARTS_NAME
from aggregator.provenance.extraction import FAILING_NAMES
from aggregator.store.base import Store, StoreInfo
from aggregator.store.decoding import damage
from aggregator.time_units import DAY_MS, SECOND_MS

if TYPE_CHECKING:
    from aggregator.app import Background, Service
    from aggregator.background.tasks import SpaceStatistics

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Below ``peer_metrics.SCRAPE_TIMEOUT_S``, so that a process whose store hangs still answers the scrape.
STORE_TIMEOUT_S = 0.7
_LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
Sample = tuple[tuple[str, ...], float]  # label values, value
S = TypeVar("S")


async def store_info(store: Store, timeout_s: float = STORE_TIMEOUT_S) -> StoreInfo:
    """State of the store; a store that does not answer within ``timeout_s`` is reported as not ready."""
    try:
        async with asyncio.timeout(timeout_s):
            return await store.info()
    except TimeoutError:
        problem = f"The store did not answer in time ({timeout_s:g} s): it hangs or is overloaded."
        return StoreInfo("", "", 0, "unknown", False, problem)


@dataclass(frozen=True, slots=True)
class MetricSpec(Generic[S]):
    """One metric. ``read``: its value, or its samples, from the state of the store and from the source."""

    name: str
    kind: Literal["counter", "gauge"]
    help_text: str
    read: Callable[[StoreInfo, S], float | Iterable[Sample]]
    labels: tuple[str, ...] = ()

    def to_family(self, store: StoreInfo, source: S) -> Metric:
        """The metric with its current samples."""
        family_type = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family = family_type(self.name, self.help_text, labels=self.labels)
        found = self.read(store, source)
        for labels, value in [((), found)] if isinstance(found, (int, float)) else found:
            family.add_metric(labels, float(value))
        return family


def _bytes_per_article(store: StoreInfo, background: Background) -> Iterator[Sample]:
    articles = sum(census.articles for census in background.maintenance.statistics.values())
    if articles:
        yield (), store.memory_bytes / articles


def _per_space(
    read: Callable[[SpaceStatistics], float | None],
) -> Callable[[StoreInfo, Background], Iterable[Sample]]:
    return lambda _, b: [
        ((space,), value)
        for space, census in b.maintenance.statistics.items()
        if (value := read(census)) is not None
    ]


STORE_METRICS: tuple[MetricSpec[object], ...] = (
    MetricSpec("aggregator_store_ready", "gauge", "1 while the store can serve.",
        lambda store, _: store.ready),
    MetricSpec("aggregator_store_memory_bytes", "gauge", "Memory used by the store.",
        lambda store, _: store.memory_bytes),
    MetricSpec("aggregator_store_memory_limit_bytes", "gauge", "Memory that the store may use; 0: no limit.",
        lambda store, _: store.limit_bytes),
    MetricSpec("aggregator_store_warning", "gauge",
        "1 while the store is nearly full, or cannot rewrite its log: `aggregator doctor` says which.",
        lambda store, _: store.warning is not None),
)  # fmt: skip
SERVICE_METRICS: tuple[MetricSpec[Service], ...] = (
    MetricSpec("aggregator_info", "gauge",
        "Version and index spaces (language, model, recipe); role: serving or shadow.",
        lambda _, s: [
            ((__version__, space, "serving" if space in s.articles.index.spaces else "shadow"), 1.0)
            for space in s.articles.index.all_spaces
        ],
        ("version", "space", "role")),
    MetricSpec("aggregator_not_ready", "gauge",
        "1 while this readiness check fails; /readyz and the log say why.",
        lambda store, s: [
            ((name,), name in s.edge.readiness.problems or (name == "store" and not store.ready))
            for name in s.edge.readiness.names
        ],
        ("check",)),
    MetricSpec("aggregator_store_forgot", "gauge",
        "1 while the store is not the one that the process remembers; /readyz and the log say why.",
        lambda _, s: s.articles.index.memory.incident is not None),
    MetricSpec(RESTARTS_NAME, "counter", RESTARTS_HELP,
        lambda _, s: [(("analysis",), s.analysis.serving.restarts)],
        (RESTARTS_LABEL,)),
    MetricSpec("aggregator_damaged_values", "counter", "Damaged stored values met; the log names them.",
        lambda *_: damage.values),
    MetricSpec("aggregator_unread_articles", "gauge",
        "Stored articles of indexes that the settings do not read, estimated.",
        lambda _, s: s.articles.foreign_index.articles),
    MetricSpec("aggregator_commit_retries", "counter", "Commits retried after a conflict.",
        lambda _, s: s.articles.ingest.commit_retries),
    MetricSpec("aggregator_bulk_throttled_seconds", "counter",
        "Time that batches were paused in favor of interactive requests.",
        lambda _, s: s.articles.load_control.throttle.throttled_s),
    MetricSpec("aggregator_index_lookups", "counter", "Index lookups.",
        lambda _, s: s.articles.index.lookup.lookups),
    MetricSpec("aggregator_index_candidates", "counter", "Bucket entries compared by lookups.",
        lambda _, s: s.articles.index.lookup.entries_read),
    MetricSpec("aggregator_index_largest_bucket_entries", "gauge",
        "Entries of the largest bucket read by a lookup since the start.",
        lambda _, s: s.articles.index.lookup.largest_bucket_entries),
)  # fmt: skip
BACKGROUND_METRICS: tuple[MetricSpec[Background], ...] = (
    MetricSpec("aggregator_leader", "gauge", "1 in the process that runs the event detector.",
        lambda _, b: b.scheduler.detector.is_leader),
    MetricSpec("aggregator_detector_runs", "counter", "Event detector runs completed as leader.",
        lambda _, b: b.scheduler.detector.ticks),
    MetricSpec("aggregator_detector_articles", "counter", "Articles read by the event detector.",
        lambda _, b: b.detector.items_read),
    MetricSpec("aggregator_detector_errors", "counter", "Event detector runs that failed.",
        lambda _, b: b.scheduler.detector.errors),
    MetricSpec("aggregator_detector_last_run_timestamp_seconds", "gauge",
        "Time of the last completed detector run in this process, seconds since 1970; 0: none.",
        lambda _, b: b.scheduler.detector.last_run_ms / 1000),
    MetricSpec("aggregator_detector_known_seconds", "gauge",
        "Time of the last 604800 s (7 days) that the detector knows; absent in a process that has "
        "not led.",
        lambda _, b: [((), s.known_days * DAY_MS / SECOND_MS) for s in (b.detector.learning,) if s]),
    MetricSpec("aggregator_detector_missed_runs", "counter",
        "Event detector runs that began too late, or not, since the previous one was still running.",
        lambda _, b: b.scheduler.missed_runs),
    MetricSpec("aggregator_maintenance_errors", "counter", "Index maintenance runs that failed.",
        lambda _, b: b.maintenance.errors),
    MetricSpec("aggregator_webhook_deliveries", "counter", "Webhook deliveries accepted by the receiver.",
        lambda _, b: b.webhook_dispatcher.delivered),
    MetricSpec("aggregator_webhook_delivery_failures", "counter", "Webhook delivery attempts that failed.",
        lambda _, b: b.webhook_dispatcher.failed_attempts),
    MetricSpec("aggregator_failing_sources", "gauge",
        "Sources at least half of whose newest 200 articles have this problem.",
        lambda _, b: [((name,), b.source_collector.failing[name]) for name in FAILING_NAMES],
        ("problem",)),
    MetricSpec("aggregator_index_segments", "gauge", "Live index segments.",
        _per_space(lambda census: census.segments), ("space",)),
    MetricSpec("aggregator_index_articles", "gauge",
        "Stored articles, equal texts counted once; above 2000 estimated from a sample.",
        _per_space(lambda census: census.articles), ("space",)),
    MetricSpec("aggregator_index_sketch_bucket_bits", "gauge",
        "Bits of a sketch key that name its bucket in the writable segment; each more halves what "
        "a look-up reads of other keys.",
        _per_space(lambda census: census.sketch_width.bits), ("space",)),
    MetricSpec("aggregator_index_oldest_timestamp_seconds", "gauge",
        "Arrival time of the oldest sampled article, seconds since 1970.",
        _per_space(lambda census: census.oldest_ms and census.oldest_ms / 1000), ("space",)),
    MetricSpec("aggregator_index_bytes_per_article", "gauge",
        "Store memory divided by the sum of `aggregator_index_articles`.", _bytes_per_article),
    MetricSpec("aggregator_last_backup_timestamp_seconds", "gauge",
        "Time of the last complete backup of the store, seconds since 1970; absent: none.",
        lambda _, b: [((), b.maintenance.last_backup_ms / 1000)] if b.maintenance.last_backup_ms else ()),
    MetricSpec("aggregator_index_entries_removed", "counter", "Index entries removed by compaction.",
        lambda _, b: b.maintenance.jobs.compactor.entries_removed),
    MetricSpec("aggregator_index_segments_dropped", "counter", "Index segments dropped.",
        lambda _, b: b.maintenance.jobs.retention.segments_dropped),
)  # fmt: skip


class BackgroundMetrics(Collector):
    """Metrics of a process that runs background services and handles no requests: those of the specs only."""

    def __init__(self) -> None:
        # Before the first scrape the process has neither.
        self._store = StoreInfo("", "", 0, "unknown", False)
        self._service: Service | None = None
        self._background: Background | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def render(
        self, store: StoreInfo, service: Service | None = None, background: Background | None = None
    ) -> bytes:
        """The exposition in Prometheus text format of what the process has: requests, background, or both."""
        self._store, self._service, self._background = store, service, background
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """The metrics of the specs in this scrape."""
        if self._service is not None:
            specs: tuple[MetricSpec[Any], ...] = (*STORE_METRICS, *SERVICE_METRICS)
            yield from (spec.to_family(self._store, self._service) for spec in specs)
        if self._background is not None:
            yield from (spec.to_family(self._store, self._background) for spec in BACKGROUND_METRICS)


class Metrics(BackgroundMetrics):
    """Metrics of one application. ``profiles``: all policy profiles, the values of the label ``policy``."""

    def __init__(self, profiles: Sequence[str] = (DEFAULT_PROFILE,)) -> None:
        super().__init__()
        # fmt: off
        registry, seconds = self._registry, _LATENCY_BUCKETS_S
        self.requests = Counter(
            "aggregator_requests", "Requests answered.", ["method", "route", "status"], registry=registry)
        self.request_seconds = Histogram(
            "aggregator_request_duration_seconds", "Time from request to response.", ["route"],
            buckets=seconds, registry=registry)
        self.articles = Counter(
            "aggregator_articles", "Articles processed, excluding dry runs.", ["verdict", "policy"],
            registry=registry)
        # Export zeros from the start: absent series look like missing data.
        for verdict in get_args(VerdictName):
            for profile in profiles:
                self.articles.labels(verdict, profile)
        self.rejected_articles = Counter(
            "aggregator_articles_rejected", "Articles rejected.", ["code"], registry=registry)
        self.stage_seconds = Histogram(
            "aggregator_stage_duration_seconds", "Processing time per article and stage.", ["stage"],
            buckets=seconds, registry=registry)
        self.distance_bits = Histogram(
            "aggregator_distance_bits", "Hamming distance to the nearest stored article, if within 7 bits.",
            buckets=range(8), registry=registry)
        self.refused_connections = Counter(
            "aggregator_connections_refused", "Connections refused because too many were open.",
            registry=registry)
        self.unexpected_errors = Counter(
            "aggregator_unhandled_exceptions", "Unhandled exceptions.", registry=registry)
        self.webhook_queue_length = Gauge(
            "aggregator_webhook_queue_length", "Pending webhook deliveries of all processes.",
            registry=registry)
        self.event_streams = Gauge(
            "aggregator_event_stream_clients", "Open event streams.", registry=registry)
        # fmt: on
        # Cached per label value: looking a child up takes longer than incrementing it.
        self._verdict_counter = cache(self.articles.labels)
        self._stage_histogram = cache(self.stage_seconds.labels)

    def record_answer(self, answer: Answer) -> None:
        """Count the answer to one article, new or sent again."""
        self._verdict_counter(answer.outcome.verdict, answer.profile).inc()
        if answer.outcome.distance is not None:
            self.distance_bits.observe(answer.outcome.distance)
        for stage, ms in answer.timings_ms.items():
            self._stage_histogram(stage).observe(ms / 1000)
