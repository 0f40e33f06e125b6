"""Prometheus registries of one process, and the table of all metrics for the documentation.

Each application has its own registry. ``multiprocess.py`` merges the processes of a service at scrape time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics import MetricWrapperBase

from aggregator.dedup.policy import DEFAULT_PROFILE
from aggregator.domain import Answer, VerdictName
from aggregator.http.metrics.collectors import (
    BACKGROUND_METRICS,
    SERVICE_METRICS,
    STORE_METRICS,
    ScrapeContext,
    ServiceCollector,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Articles whose timings are kept individually for the health page.
RECENT_ARTICLES = 1000
_Row = tuple[str, str, tuple[str, ...], str]  # name, kind, labels, meaning
_LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)


class BackgroundMetrics:
    """Metrics of a process that runs background services and handles no requests: the collector's only."""

    def __init__(self) -> None:
        self._registry, self._collector = CollectorRegistry(), ServiceCollector()
        self._registry.register(self._collector)
        ProcessCollector(registry=self._registry)

    def render(self, context: ScrapeContext) -> bytes:
        """The exposition in Prometheus text format."""
        self._collector.context = context
        return generate_latest(self._registry)


class Metrics(BackgroundMetrics):
    """Metrics of one application: the collector's, and those that handlers update.

    ``profiles``: names of all policy profiles, the values of the label ``policy``.
    """

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
        self.event_streams = Gauge(
            "aggregator_event_stream_clients", "Open event streams.", registry=registry)
        # fmt: on
        self.recent_timings_ms: deque[dict[str, float]] = deque(maxlen=RECENT_ARTICLES)
        # Cached per label value: looking a child up takes longer than incrementing it.
        self._verdict_counter = cache(self.articles.labels)
        self._stage_histogram = cache(self.stage_seconds.labels)

    def record_answer(self, answer: Answer) -> None:
        """Count the answer to one article, new or sent again."""
        self._verdict_counter(answer.outcome.verdict, answer.profile).inc()
        if answer.outcome.distance is not None:
            self.distance_bits.observe(answer.outcome.distance)
        if answer.timings_ms:
            self.recent_timings_ms.append(answer.timings_ms)
        for stage, ms in answer.timings_ms.items():
            self._stage_histogram(stage).observe(ms / 1000)


def markdown_table() -> str:
    """The metrics table of docs/metrics.md (a test compares them); names as in a Prometheus query."""
    specs = STORE_METRICS + SERVICE_METRICS + BACKGROUND_METRICS
    rows: list[_Row] = [(spec.name, spec.kind, spec.labels, spec.help_text) for spec in specs]
    for metric in vars(Metrics()).values():
        if isinstance(metric, MetricWrapperBase):
            family: Metric = next(iter(metric.collect()))
            rows.append((family.name, family.type, tuple(metric._labelnames), family.documentation))
    lines = ["| series | kind | labels | meaning |", "| --- | --- | --- | --- |"]
    for row in sorted(rows, key=_query_name):
        labels = ", ".join(f"`{label}`" for label in row[2])
        lines.append(f"| `{_query_name(row)}` | {row[1]} | {labels} | {row[3]} |")
    return "\n".join(lines)


def _query_name(row: _Row) -> str:
    return f"{row[0]}_total" if row[1] == "counter" else row[0]
