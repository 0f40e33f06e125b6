"""The table of docs/metrics.md (a test compares them): ``python -m tests.project.metrics_table``."""

from __future__ import annotations

from typing import Any

from prometheus_client.core import Metric
from prometheus_client.metrics import MetricWrapperBase

from aggregator.http.metrics import BACKGROUND_METRICS, SERVICE_METRICS, STORE_METRICS, Metrics, MetricSpec

_Row = tuple[str, str, tuple[str, ...], str]  # name, kind, labels, meaning


def markdown_table() -> str:
    """The metrics table of docs/metrics.md (a test compares them); names as in a Prometheus query."""
    specs: tuple[MetricSpec[Any], ...] = (*STORE_METRICS, *SERVICE_METRICS, *BACKGROUND_METRICS)
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


if __name__ == "__main__":
    print(markdown_table())
