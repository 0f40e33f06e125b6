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
    from aggregator.background.wiring import Scheduled

Sample = tuple[tuple[str, ...], float]


# Whoever gathers the figures of all processes waits a second for each, and Prometheus not for ever.
STORE_S = 0.7


async def state_of(store: Store) -> StoreInfo:
    """The store's state, of one that hangs too: not ready is what it is then."""
    try:
        async with asyncio.timeout(STORE_S):
            return await store.info()
    except TimeoutError:
        return StoreInfo(
            "", "", 0, "unknown while it hangs", False, f"It did not answer within {STORE_S:g} s."
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the rows read: the store's state, the service and the calls that are owed to each webhook, the scheduled work.

    One of the two latter is None in a process that does not do it.
    """

    store: StoreInfo
    service: Service | None = None
    scheduled: Scheduled | None = None
    owed: Mapping[str, int] = field(default_factory=dict)

    @property
    def serving(self) -> Service:
        """Of a process that answers requests."""
        assert self.service is not None
        return self.service

    @property
    def working(self) -> Scheduled:
        """Of the process that does the scheduled work."""
        assert self.scheduled is not None
        return self.scheduled


@dataclass(frozen=True, slots=True)
class State:
    """One series. ``read`` gives its samples: label values and value."""

    name: str
    kind: Literal["counter", "gauge"]
    meaning: str
    read: Callable[[Snapshot], Iterable[Sample]]
    labels: tuple[str, ...] = ()

    def family(self, snapshot: Snapshot) -> Metric:
        made = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family = made(self.name, self.meaning, labels=self.labels)
        for labels, value in self.read(snapshot):
            family.add_metric(labels, value)
        return family


def one(read: Callable[[Service], float]) -> Callable[[Snapshot], Iterable[Sample]]:
    """A series without labels, read from the service."""
    return lambda snapshot: [((), float(read(snapshot.serving)))]


def of_work(read: Callable[[Scheduled], float]) -> Callable[[Snapshot], Iterable[Sample]]:
    """A series without labels, read from the scheduled work."""
    return lambda snapshot: [((), float(read(snapshot.working)))]


def of_store(read: Callable[[StoreInfo], float]) -> Callable[[Snapshot], Iterable[Sample]]:
    """A series without labels, read from the store's state."""
    return lambda snapshot: [((), float(read(snapshot.store)))]


def _models(snapshot: Snapshot) -> Iterator[Sample]:
    service = snapshot.serving
    for space in service.index.spaces:
        yield (__version__, space, "decides"), 1.0
    for space in service.index.beside:
        yield (__version__, space, "written along"), 1.0


def _oldest(snapshot: Snapshot) -> Iterator[Sample]:
    for space, census in snapshot.working.housekeeping.counts.items():
        oldest = [s.oldest_ms for s in census.segments if s.oldest_ms is not None]
        if oldest:
            yield (space,), min(oldest) / 1000


def _per_article(snapshot: Snapshot) -> Iterator[Sample]:
    articles = sum(census.articles for census in snapshot.working.housekeeping.counts.values())
    if articles:
        yield (), snapshot.store.memory_bytes / articles


def _by_space(read: Callable[[Scheduled, str], float]) -> Callable[[Snapshot], Iterable[Sample]]:
    return lambda snapshot: [
        ((space,), read(snapshot.working, space)) for space in snapshot.working.housekeeping.counts
    ]


OF_STORE = (
    State("aggregator_store_ready", "gauge", "1 while the store can serve.", of_store(lambda s: s.ready)),
    State("aggregator_store_memory_bytes", "gauge", "Memory the store uses.", of_store(lambda s: s.memory_bytes)),
)  # fmt: skip
OF_SERVICE = (
    State("aggregator_info", "gauge", "Version and spaces (language, model and recipe); role: decides, or written along.", _models, ("version", "space", "role")),
    State("aggregator_commits_decided_again", "counter", "Commits that lost a race and were decided again.", one(lambda s: s.ingest.decided_again)),
    State("aggregator_bulk_pause_seconds", "counter", "Time that batches stood still for articles that came one by one.", one(lambda s: s.pace.paused_s)),
    State("aggregator_webhook_calls_owed", "gauge", "Webhook calls that are still to be sent, of all processes.", lambda snapshot: [((), float(sum(snapshot.owed.values())))]),
    State("aggregator_index_lookups", "counter", "Look-ups.", one(lambda s: s.index.lookups)),
    State("aggregator_index_candidates", "counter", "Bucket entries that look-ups compared.", one(lambda s: s.index.entries_read)),
    State("aggregator_index_largest_bucket", "gauge", "Entries of the largest bucket that a look-up met since the start.", one(lambda s: s.index.largest_read)),
)  # fmt: skip
OF_SCHEDULED = (
    State("aggregator_leader", "gauge", "1 in the process that runs the event detector.", of_work(lambda s: s.jobs.leading)),
    State("aggregator_detector_ticks", "counter", "Ticks of the event detector that were finished as leader.", of_work(lambda s: s.jobs.ticks)),
    State("aggregator_detector_articles", "counter", "Articles that the event detector has read.", of_work(lambda s: s.jobs.articles)),
    State("aggregator_detector_errors", "counter", "Ticks of the event detector that failed.", of_work(lambda s: s.jobs.errors)),
    State("aggregator_detector_last_tick_seconds", "gauge", "When the detector last finished a tick here, seconds since 1970; 0: never.", of_work(lambda s: s.jobs.last_tick_ms / 1000)),
    State("aggregator_scheduler_misfires", "counter", "Ticks of the event detector that came too late.", of_work(lambda s: s.jobs.misfires)),
    State("aggregator_scheduler_overlaps", "counter", "Ticks that were left out, since the one before still ran.", of_work(lambda s: s.jobs.overlaps)),
    State("aggregator_upkeep_errors", "counter", "Turns of the upkeep of the index that failed.", of_work(lambda s: s.housekeeping.errors)),
    State("aggregator_webhook_calls_sent", "counter", "Webhook calls that were taken.", of_work(lambda s: s.courier.sent)),
    State("aggregator_webhook_calls_failed", "counter", "Webhook calls that were refused or reached nobody.", of_work(lambda s: s.courier.failures)),
    State("aggregator_index_segments", "gauge", "Live segments.", _by_space(lambda s, space: len(s.housekeeping.counts[space].segments)), ("space",)),
    State("aggregator_index_articles", "gauge", "Articles of live segments, estimated from a sample.", _by_space(lambda s, space: s.housekeeping.counts[space].articles), ("space",)),
    State("aggregator_index_oldest_seconds", "gauge", "Arrival of the oldest marked article, seconds since 1970.", _oldest, ("space",)),
    State("aggregator_index_bytes_per_article", "gauge", "Memory of the store per estimated article.", _per_article),
    State("aggregator_index_entries_removed", "counter", "Entries that compaction removed.", of_work(lambda s: s.housekeeping.upkeep.done.entries_removed)),
    State("aggregator_index_segments_dropped", "counter", "Segments dropped.", of_work(lambda s: s.housekeeping.upkeep.done.segments_dropped)),
)  # fmt: skip


class States(Collector):
    """Collects all rows from the newest snapshot; nothing before there is one."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None

    def collect(self) -> Iterator[Metric]:
        if self.snapshot is None:
            return
        for row in _rows(self.snapshot):
            yield row.family(self.snapshot)


def _rows(snapshot: Snapshot) -> tuple[State, ...]:
    """Those of a process that answers requests, those of one that does the scheduled work, or all."""
    service, scheduled = snapshot.service, snapshot.scheduled
    real = service is not None and service.scheduled is not None
    return (
        (OF_STORE if service is not None else ())
        + (OF_SERVICE if real else ())
        + (OF_SCHEDULED if scheduled is not None else ())
    )
