"""Prometheus collector for values that other parts of the service hold, read at scrape time.

Only the state of the store and the lengths of the webhook queues are read from the store, once per scrape.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from aggregator import __version__
from aggregator.http.metrics.multiprocess import RESTARTS_HELP, RESTARTS_LABEL, RESTARTS_NAME
from aggregator.store.base import Store, StoreInfo
from aggregator.store.decoding import damage
from aggregator.time_units import DAY_MS, SECOND_MS

if TYPE_CHECKING:
    from aggregator.app import Background, Service

Sample = tuple[tuple[str, ...], float]

# Below ``multiprocess.SCRAPE_TIMEOUT_S``, so that a process whose store hangs still answers the scrape.
STORE_TIMEOUT_S = 0.7


async def store_info(store: Store) -> StoreInfo:
    """State of the store; a store that does not answer within STORE_TIMEOUT_S is reported as not ready."""
    try:
        async with asyncio.timeout(STORE_TIMEOUT_S):
            return await store.info()
    except TimeoutError:
        problem = f"The store did not answer within {STORE_TIMEOUT_S:g} s."
        return StoreInfo("", "", 0, "unknown", False, problem)


@dataclass(frozen=True, slots=True)
class ScrapeContext:
    """What the metric specs read during one scrape."""

    store: StoreInfo
    service: Service | None = None  # None in the background process
    background: Background | None = None  # None in a process without background services
    pending_deliveries: Mapping[str, int] = field(default_factory=dict)  # queue length per webhook id

    @property
    def active_service(self) -> Service:
        """``service`` of a process that handles requests."""
        assert self.service is not None
        return self.service

    @property
    def active_background(self) -> Background:
        """``background`` of the process that runs it."""
        assert self.background is not None
        return self.background


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric. ``read`` returns its samples: (label values, value)."""

    name: str
    kind: Literal["counter", "gauge"]
    help_text: str
    read: Callable[[ScrapeContext], Iterable[Sample]]
    labels: tuple[str, ...] = ()

    def to_family(self, context: ScrapeContext) -> Metric:
        """The metric with its current samples."""
        family_type = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family = family_type(self.name, self.help_text, labels=self.labels)
        for labels, value in self.read(context):
            family.add_metric(labels, value)
        return family


def from_service(read: Callable[[Service], float]) -> Callable[[ScrapeContext], Iterable[Sample]]:
    """A ``read`` for a metric without labels, from the service."""
    return lambda context: [((), float(read(context.active_service)))]


def from_background(read: Callable[[Background], float]) -> Callable[[ScrapeContext], Iterable[Sample]]:
    """A ``read`` for a metric without labels, from the background services."""
    return lambda context: [((), float(read(context.active_background)))]


def from_store(read: Callable[[StoreInfo], float]) -> Callable[[ScrapeContext], Iterable[Sample]]:
    """A ``read`` for a metric without labels, from the state of the store."""
    return lambda context: [((), float(read(context.store)))]


def _index_spaces(context: ScrapeContext) -> Iterator[Sample]:
    service = context.active_service
    for space in service.articles.index.spaces:
        yield (__version__, space, "serving"), 1.0
    for space in service.articles.index.shadow_spaces:
        yield (__version__, space, "shadow"), 1.0


def _readiness_problems(context: ScrapeContext) -> Iterator[Sample]:
    readiness = context.active_service.edge.readiness
    for name in readiness.names:
        yield (name,), float(name in readiness.problems)


def _oldest_article_seconds(context: ScrapeContext) -> Iterator[Sample]:
    for space, census in context.active_background.maintenance.statistics.items():
        oldest = [s.oldest_ms for s in census.segments if s.oldest_ms is not None]
        if oldest:
            yield (space,), min(oldest) / 1000


def _bytes_per_article(context: ScrapeContext) -> Iterator[Sample]:
    articles = sum(census.articles for census in context.active_background.maintenance.statistics.values())
    if articles:
        yield (), context.store.memory_bytes / articles


def _detector_known_seconds(context: ScrapeContext) -> Iterator[Sample]:
    learning = context.active_background.detector.learning
    if learning is not None:
        yield (), learning.known_days * DAY_MS / SECOND_MS


def _per_space(
    read: Callable[[Background, str], float],
) -> Callable[[ScrapeContext], Iterable[Sample]]:
    return lambda context: [
        ((space,), read(context.active_background, space))
        for space in context.active_background.maintenance.statistics
    ]


STORE_METRICS = (
    MetricSpec("aggregator_store_ready", "gauge", "1 while the store can serve.",
        from_store(lambda s: s.ready)),
    MetricSpec("aggregator_store_memory_bytes", "gauge", "Memory used by the store.",
        from_store(lambda s: s.memory_bytes)),
    MetricSpec("aggregator_store_warning", "gauge",
        "1 while the store accepts writes but cannot rewrite its log; `aggregator doctor` says why.",
        from_store(lambda s: s.warning is not None)),
)  # fmt: skip
SERVICE_METRICS = (
    MetricSpec("aggregator_info", "gauge",
        "Version and index spaces (language, model, recipe); role: serving or shadow.", _index_spaces,
        ("version", "space", "role")),
    MetricSpec("aggregator_not_ready", "gauge",
        "1 while this readiness check fails; /readyz and the log say why.", _readiness_problems, ("check",)),
    MetricSpec(RESTARTS_NAME, "counter", RESTARTS_HELP,
        lambda context: [(("analysis",), float(context.active_service.analysis.serving.restarts))],
        (RESTARTS_LABEL,)),
    MetricSpec("aggregator_damaged_values", "counter", "Damaged stored values met; the log names them.",
        lambda context: [((), float(damage.values))]),
    MetricSpec("aggregator_unread_articles", "gauge",
        "Stored articles of indexes that the settings do not read, estimated.",
        from_service(lambda s: s.articles.unread_index.articles)),
    MetricSpec("aggregator_commit_retries", "counter", "Commits retried after a conflict.",
        from_service(lambda s: s.articles.ingest.commit_retries)),
    MetricSpec("aggregator_bulk_throttled_seconds", "counter",
        "Time that batches were paused in favor of interactive requests.",
        from_service(lambda s: s.articles.load_control.throttle.throttled_s)),
    MetricSpec("aggregator_webhook_queue_length", "gauge", "Pending webhook deliveries of all processes.",
        lambda context: [((), float(sum(context.pending_deliveries.values())))]),
    MetricSpec("aggregator_index_lookups", "counter", "Index lookups.",
        from_service(lambda s: s.articles.index.lookup.counters.lookups)),
    MetricSpec("aggregator_index_candidates", "counter", "Bucket entries compared by lookups.",
        from_service(lambda s: s.articles.index.lookup.counters.entries_read)),
    MetricSpec("aggregator_index_largest_bucket_entries", "gauge",
        "Entries of the largest bucket read by a lookup since the start.",
        from_service(lambda s: s.articles.index.lookup.counters.largest_bucket_entries)),
)  # fmt: skip
BACKGROUND_METRICS = (
    MetricSpec("aggregator_leader", "gauge", "1 in the process that runs the event detector.",
        from_background(lambda s: s.scheduler.detector.is_leader)),
    MetricSpec("aggregator_detector_runs", "counter", "Event detector runs completed as leader.",
        from_background(lambda s: s.scheduler.detector.ticks)),
    MetricSpec("aggregator_detector_articles", "counter", "Articles read by the event detector.",
        from_background(lambda s: s.scheduler.detector.articles_read)),
    MetricSpec("aggregator_detector_errors", "counter", "Event detector runs that failed.",
        from_background(lambda s: s.scheduler.detector.errors)),
    MetricSpec("aggregator_detector_last_run_timestamp_seconds", "gauge",
        "Time of the last completed detector run in this process, seconds since 1970; 0: none.",
        from_background(lambda s: s.scheduler.detector.last_run_ms / 1000)),
    MetricSpec("aggregator_detector_known_seconds", "gauge",
        "Time of the last 604800 s (7 days) that the detector knows; absent in a process that has "
        "not led.", _detector_known_seconds),
    MetricSpec("aggregator_scheduler_misfires", "counter",
        "Event detector runs that were missed because they were due too long ago.",
        from_background(lambda s: s.scheduler.misfires)),
    MetricSpec("aggregator_scheduler_overlaps", "counter",
        "Event detector runs skipped because the previous one was still running.",
        from_background(lambda s: s.scheduler.overlaps)),
    MetricSpec("aggregator_maintenance_errors", "counter", "Index maintenance runs that failed.",
        from_background(lambda s: s.maintenance.errors)),
    MetricSpec("aggregator_webhook_deliveries", "counter", "Webhook deliveries accepted by the receiver.",
        from_background(lambda s: s.webhook_dispatcher.delivered)),
    MetricSpec("aggregator_webhook_delivery_failures", "counter", "Webhook delivery attempts that failed.",
        from_background(lambda s: s.webhook_dispatcher.failed_attempts)),
    MetricSpec("aggregator_index_segments", "gauge", "Live index segments.",
        _per_space(lambda s, space: len(s.maintenance.statistics[space].segments)), ("space",)),
    MetricSpec("aggregator_index_articles", "gauge", "Articles in live segments, estimated from a sample.",
        _per_space(lambda s, space: s.maintenance.statistics[space].articles), ("space",)),
    MetricSpec("aggregator_index_sketch_bucket_bits", "gauge",
        "Bits of a sketch key that name its bucket in the writable segment; each more halves what "
        "a look-up " "reads of other keys.",
        _per_space(lambda s, space: s.maintenance.statistics[space].segments[-1].sketch_width.bits),
        ("space",)),
    MetricSpec("aggregator_index_oldest_timestamp_seconds", "gauge",
        "Arrival time of the oldest sampled article, seconds since 1970.", _oldest_article_seconds,
        ("space",)),
    MetricSpec("aggregator_index_bytes_per_article", "gauge",
        "Store memory divided by the estimated number of articles.", _bytes_per_article),
    MetricSpec("aggregator_index_entries_removed", "counter", "Index entries removed by compaction.",
        from_background(lambda s: s.maintenance.jobs.compactor.counters.entries_removed)),
    MetricSpec("aggregator_index_segments_dropped", "counter", "Index segments dropped.",
        from_background(lambda s: s.maintenance.jobs.retention.segments_dropped)),
)  # fmt: skip


class ServiceCollector(Collector):
    """Collector of all specs that apply to ``context``: of requests, background services, or both."""

    def __init__(self) -> None:
        self.context: ScrapeContext | None = None  # before the first scrape: no metrics

    def collect(self) -> Iterator[Metric]:
        """The metrics of the current context."""
        context = self.context
        if context is None:
            return
        if context.service is not None:
            yield from (spec.to_family(context) for spec in (*STORE_METRICS, *SERVICE_METRICS))
        if context.background is not None:
            yield from (spec.to_family(context) for spec in BACKGROUND_METRICS)
