"""What Prometheus may know of this process. One registry per application, so tests never share.

Each process of a service counts for itself; ``siblings.py`` puts them together for a scrape.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics import MetricWrapperBase

from aggregator.domain import Answer, VerdictName
from aggregator.http.metrics.collectors import (
    BACKGROUND_METRICS,
    SERVICE_METRICS,
    STORE_METRICS,
    ScrapeContext,
    ServiceCollector,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Of so many articles the times are kept singly, for the health page.
RECENT_ARTICLES = 1000
_LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)


class Metrics:
    """All series of one application; names start with ``aggregator_``."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter(
            "aggregator_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self.request_seconds = Histogram(
            "aggregator_request_seconds",
            "Time from request to answer.",
            ["route"],
            buckets=_LATENCY_BUCKETS_S,
            registry=registry,
        )
        self.articles = Counter(
            "aggregator_articles", "Articles answered, dry runs left out.", ["verdict"], registry=registry
        )
        for verdict in get_args(
            VerdictName
        ):  # a series that begins with its first article hides that none came
            self.articles.labels(verdict)
        self.rejected_articles = Counter(
            "aggregator_articles_rejected", "Articles that could not be used.", ["code"], registry=registry
        )
        self.stage_seconds = Histogram(
            "aggregator_stage_seconds",
            "Time per article and stage.",
            ["stage"],
            buckets=_LATENCY_BUCKETS_S,
            registry=registry,
        )
        self.distance_bits = Histogram(
            "aggregator_distance_bits",
            "Hamming distance to the nearest stored article, when there is one within 7 bits.",
            buckets=range(8),
            registry=registry,
        )
        self.unexpected_errors = Counter(
            "aggregator_unhandled_exceptions", "Errors that nobody expected.", registry=registry
        )
        self.event_streams = Gauge(
            "aggregator_event_stream_clients", "Open streams of changed events.", registry=registry
        )
        self._collector = ServiceCollector()
        registry.register(self._collector)
        ProcessCollector(registry=registry)
        self.recent_timings_ms: deque[dict[str, float]] = deque(maxlen=RECENT_ARTICLES)
        # Of each article: to look a series up by its labels takes longer than to count.
        self._verdict_counter, self._stage_histogram = (
            cache(self.articles.labels),
            cache(self.stage_seconds.labels),
        )

    def record_answer(self, answer: Answer) -> None:
        """Count one stored or repeated article."""
        self._verdict_counter(answer.outcome.verdict).inc()
        if answer.outcome.distance is not None:
            self.distance_bits.observe(answer.outcome.distance)
        if answer.timings_ms:
            self.recent_timings_ms.append(answer.timings_ms)
        for stage, ms in answer.timings_ms.items():
            self._stage_histogram(stage).observe(ms / 1000)

    def render(self, context: ScrapeContext) -> bytes:
        """The text that Prometheus reads."""
        self._collector.context = context
        return generate_latest(self._registry)


class BackgroundMetrics:
    """The series of a process that does the scheduled work and answers no requests."""

    def __init__(self) -> None:
        self._registry, self._collector = CollectorRegistry(), ServiceCollector()
        self._registry.register(self._collector)
        ProcessCollector(registry=self._registry)

    def render(self, context: ScrapeContext) -> bytes:
        """The text that Prometheus reads."""
        self._collector.context = context
        return generate_latest(self._registry)


def markdown_table() -> str:
    """The table of docs/METRICS.md; a test keeps the two equal. Names are those of a query."""
    found = [
        (family.name, family.type, labels, family.documentation) for family, labels in _instrument_families()
    ]
    found += [
        (row.name, row.kind, row.labels, row.help_text)
        for row in STORE_METRICS + SERVICE_METRICS + BACKGROUND_METRICS
    ]
    rows = ["| series | kind | labels | meaning |", "| --- | --- | --- | --- |"]
    for name, kind, labels, meaning in sorted((_query_name(*row[:2]), *row[1:]) for row in found):
        rows.append(f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {meaning} |")
    return "\n".join(rows)


def _query_name(name: str, kind: str) -> str:
    """Its name in a query."""
    return f"{name}_total" if kind == "counter" else name


def _instrument_families() -> list[tuple[Metric, tuple[str, ...]]]:
    metrics = [metric for metric in vars(Metrics()).values() if isinstance(metric, MetricWrapperBase)]
    return [(next(iter(metric.collect())), tuple(metric._labelnames)) for metric in metrics]
