"""Counts of restarted processes, merged with those of the web processes."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from aggregator.http.metrics.multiprocess import merge_expositions
from aggregator.http.metrics.restarts import (
    ANALYSIS,
    HELP_TEXT,
    LABEL,
    METRIC_NAME,
    SUPERVISOR,
    RestartCounts,
    Supervised,
)


class OneFamily(Collector):
    """The restarts that a web process counts."""

    def collect(self) -> list[CounterMetricFamily]:
        """One sample."""
        family = CounterMetricFamily(METRIC_NAME, HELP_TEXT, labels=[LABEL])
        family.add_metric([ANALYSIS], 4)
        return [family]


async def test_counts_are_merged_into_one_family() -> None:
    """The text that is written here has the form of the metrics library; all kinds start at 0."""
    registry = CollectorRegistry()
    registry.register(OneFamily())
    counts = RestartCounts()
    counts.add(Supervised.WORKER)
    counts.add(Supervised.WORKER)

    text = merge_expositions({"0": generate_latest(registry), SUPERVISOR: await counts.render()})
    (family,) = text_string_to_metric_families(text.decode())

    assert (family.name, family.type, family.documentation) == (METRIC_NAME, "counter", HELP_TEXT)
    assert {(s.name, s.labels["worker"], s.labels[LABEL], s.value) for s in family.samples} == {
        (f"{METRIC_NAME}_total", "0", ANALYSIS, 4.0),
        (f"{METRIC_NAME}_total", SUPERVISOR, "worker", 2.0),
        (f"{METRIC_NAME}_total", SUPERVISOR, "background", 0.0),
        (f"{METRIC_NAME}_total", SUPERVISOR, "store", 0.0),
    }
