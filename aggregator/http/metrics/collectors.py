"""What the parts of the service know of themselves when Prometheus asks: one row for each series.

Nothing here is counted twice: a part counts for itself, since its start, and a row says where. Only the store's
state and the webhooks' outbox are read for a scrape.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from aggregator import __version__
from aggregator.store.base import Store, StoreInfo

if TYPE_CHECKING:
    from aggregator.app import Service
    from aggregator.background.wiring import BackgroundServices

Sample = tuple[tuple[str, ...], float]


# Whoever gathers the figures of all processes waits a second for each, and Prometheus not for ever.
STORE_TIMEOUT_S = 0.7


async def store_info(store: Store) -> StoreInfo:
    """The store's state, of one that hangs too: not ready is what it is then."""
    try:
        async with asyncio.timeout(STORE_TIMEOUT_S):
            return await store.info()
    except TimeoutError:
        return StoreInfo(
            "", "", 0, "unknown while it hangs", False, f"It did not answer within {STORE_TIMEOUT_S:g} s."
        )


@dataclass(frozen=True, slots=True)
class ScrapeContext:
    """What the rows read: the store's state, the service and the calls that are owed to each webhook, the scheduled work.

    One of the two latter is None in a process that does not do it.
    """

    store: StoreInfo
    service: Service | None = None
    background: BackgroundServices | None = None
    pending_deliveries: Mapping[str, int] = field(default_factory=dict)

    @property
    def active_service(self) -> Service:
        """Of a process that answers requests."""
        assert self.service is not None
        return self.service

    @property
    def active_background(self) -> BackgroundServices:
        """Of the process that does the scheduled work."""
        assert self.background is not None
        return self.background


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One series. ``read`` gives its samples: label values and value."""

    name: str
    kind: Literal["counter", "gauge"]
    help_text: str
    read: Callable[[ScrapeContext], Iterable[Sample]]
    labels: tuple[str, ...] = ()

    def to_family(self, context: ScrapeContext) -> Metric:
        made = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family = made(self.name, self.help_text, labels=self.labels)
        for labels, value in self.read(context):
            family.add_metric(labels, value)
        return family


def from_service(read: Callable[[Service], float]) -> Callable[[ScrapeContext], Iterable[Sample]]:
    """A series without labels, read from the service."""
    return lambda snapshot: [((), float(read(snapshot.active_service)))]


def from_background(
    read: Callable[[BackgroundServices], float],
) -> Callable[[ScrapeContext], Iterable[Sample]]:
    """A series without labels, read from the scheduled work."""
    return lambda snapshot: [((), float(read(snapshot.active_background)))]


def from_store(read: Callable[[StoreInfo], float]) -> Callable[[ScrapeContext], Iterable[Sample]]:
    """A series without labels, read from the store's state."""
    return lambda snapshot: [((), float(read(snapshot.store)))]


def _index_spaces(context: ScrapeContext) -> Iterator[Sample]:
    service = context.active_service
    for space in service.index.spaces:
        yield (__version__, space, "decides"), 1.0
    for space in service.index.shadow_spaces:
        yield (__version__, space, "written along"), 1.0


def _oldest_article_seconds(context: ScrapeContext) -> Iterator[Sample]:
    for space, census in context.active_background.maintenance.statistics.items():
        oldest = [s.oldest_ms for s in census.segments if s.oldest_ms is not None]
        if oldest:
            yield (space,), min(oldest) / 1000


def _bytes_per_article(context: ScrapeContext) -> Iterator[Sample]:
    articles = sum(census.articles for census in context.active_background.maintenance.statistics.values())
    if articles:
        yield (), context.store.memory_bytes / articles


def _per_space(
    read: Callable[[BackgroundServices, str], float],
) -> Callable[[ScrapeContext], Iterable[Sample]]:
    return lambda snapshot: [
        ((space,), read(snapshot.active_background, space))
        for space in snapshot.active_background.maintenance.statistics
    ]


STORE_METRICS = (
    MetricSpec("aggregator_store_ready", "gauge", "1 while the store can serve.", from_store(lambda s: s.ready)),
    MetricSpec("aggregator_store_memory_bytes", "gauge", "Memory the store uses.", from_store(lambda s: s.memory_bytes)),
)  # fmt: skip
SERVICE_METRICS = (
    MetricSpec("aggregator_info", "gauge", "Version and spaces (language, model and recipe); role: decides, or written along.", _index_spaces, ("version", "space", "role")),
    MetricSpec("aggregator_commit_retries", "counter", "Commits that lost a race and were decided again.", from_service(lambda s: s.ingest.commit_retries)),
    MetricSpec("aggregator_bulk_throttled_seconds", "counter", "Time that batches stood still for articles that came one by one.", from_service(lambda s: s.throttle.throttled_s)),
    MetricSpec("aggregator_webhook_queue_length", "gauge", "Webhook calls that are still to be sent, of all processes.", lambda snapshot: [((), float(sum(snapshot.pending_deliveries.values())))]),
    MetricSpec("aggregator_index_lookups", "counter", "Look-ups.", from_service(lambda s: s.index.lookups)),
    MetricSpec("aggregator_index_candidates", "counter", "Bucket entries that look-ups compared.", from_service(lambda s: s.index.entries_read)),
    MetricSpec("aggregator_index_largest_bucket", "gauge", "Entries of the largest bucket that a look-up met since the start.", from_service(lambda s: s.index.largest_bucket_entries)),
)  # fmt: skip
BACKGROUND_METRICS = (
    MetricSpec("aggregator_leader", "gauge", "1 in the process that runs the event detector.", from_background(lambda s: s.scheduler.is_leader)),
    MetricSpec("aggregator_detector_runs", "counter", "Ticks of the event detector that were finished as leader.", from_background(lambda s: s.scheduler.ticks)),
    MetricSpec("aggregator_detector_articles", "counter", "Articles that the event detector has read.", from_background(lambda s: s.scheduler.articles_read)),
    MetricSpec("aggregator_detector_errors", "counter", "Ticks of the event detector that failed.", from_background(lambda s: s.scheduler.errors)),
    MetricSpec("aggregator_detector_last_run_seconds", "gauge", "When the detector last finished a tick here, seconds since 1970; 0: never.", from_background(lambda s: s.scheduler.last_tick_ms / 1000)),
    MetricSpec("aggregator_scheduler_misfires", "counter", "Ticks of the event detector that came too late.", from_background(lambda s: s.scheduler.misfires)),
    MetricSpec("aggregator_scheduler_overlaps", "counter", "Ticks that were left out, since the one before still ran.", from_background(lambda s: s.scheduler.overlaps)),
    MetricSpec("aggregator_maintenance_errors", "counter", "Turns of the upkeep of the index that failed.", from_background(lambda s: s.maintenance.errors)),
    MetricSpec("aggregator_webhook_deliveries", "counter", "Webhook calls that were taken.", from_background(lambda s: s.webhook_dispatcher.delivered)),
    MetricSpec("aggregator_webhook_delivery_failures", "counter", "Webhook calls that were refused or reached nobody.", from_background(lambda s: s.webhook_dispatcher.failed_attempts)),
    MetricSpec("aggregator_index_segments", "gauge", "Live segments.", _per_space(lambda s, space: len(s.maintenance.statistics[space].segments)), ("space",)),
    MetricSpec("aggregator_index_articles", "gauge", "Articles of live segments, estimated from a sample.", _per_space(lambda s, space: s.maintenance.statistics[space].articles), ("space",)),
    MetricSpec("aggregator_index_oldest_seconds", "gauge", "Arrival of the oldest marked article, seconds since 1970.", _oldest_article_seconds, ("space",)),
    MetricSpec("aggregator_index_bytes_per_article", "gauge", "Memory of the store per estimated article.", _bytes_per_article),
    MetricSpec("aggregator_index_entries_removed", "counter", "Entries that compaction removed.", from_background(lambda s: s.maintenance.compactor.counters.entries_removed)),
    MetricSpec("aggregator_index_segments_dropped", "counter", "Segments dropped.", from_background(lambda s: s.maintenance.compactor.counters.segments_dropped)),
)  # fmt: skip


class ServiceCollector(Collector):
    """Collects all rows from the newest snapshot; nothing before there is one."""

    def __init__(self) -> None:
        self.context: ScrapeContext | None = None

    def collect(self) -> Iterator[Metric]:
        if self.context is None:
            return
        for row in _active_specs(self.context):
            yield row.to_family(self.context)


def _active_specs(context: ScrapeContext) -> tuple[MetricSpec, ...]:
    """Those of a process that answers requests, those of one that does the scheduled work, or all."""
    service, scheduled = context.service, context.background
    real = service is not None and service.background is not None
    return (
        (STORE_METRICS if service is not None else ())
        + (SERVICE_METRICS if real else ())
        + (BACKGROUND_METRICS if scheduled is not None else ())
    )
