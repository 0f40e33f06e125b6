"""Metrics of one application."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aggregator.app import Background, Service
from aggregator.domain import Answer, Outcome
from aggregator.events.detection.model import LearningStatus
from aggregator.http import metrics as http_metrics
from aggregator.http.metrics import (
    BackgroundMetrics,
    Metrics,
    MetricSpec,
    store_info,
)
from aggregator.store.base import Store, StoreInfo
from tests.project.metrics_table import markdown_table
from tests.support.fake_service import FakeService

READY = StoreInfo("memory", "1", 4096, "nothing is kept", ready=True)


def samples(metrics: BackgroundMetrics) -> dict[tuple[str, ...], float]:
    """The samples of a scrape by name and label values, in the order of the labels."""
    families = text_string_to_metric_families(metrics.render(READY).decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def answer(outcome: Outcome, **timings_ms: float) -> Answer:
    """An answer with this outcome."""
    return Answer("a1", outcome, "en.0000", 1, False, timings_ms=timings_ms)


def test_an_answer_is_counted_once_per_verdict_stage_and_distance() -> None:
    """Times are exported in seconds."""
    metrics = Metrics()
    metrics.record_answer(answer(Outcome("duplicate", distance=2), analyse=1.5, lookup=500.0))
    metrics.record_answer(answer(Outcome("new"), analyse=2.5))
    found = samples(metrics)

    counts = [found["aggregator_articles_total", "default", v] for v in ("new", "related", "duplicate")]
    assert counts == [1, 0, 1]
    assert found["aggregator_stage_duration_seconds_count", "analyse"] == 2
    assert found["aggregator_stage_duration_seconds_sum", "analyse"] == pytest.approx(0.004)
    assert found["aggregator_stage_duration_seconds_sum", "lookup"] == pytest.approx(0.5)
    assert found["aggregator_distance_bits_count",] == 1
    assert (
        found["aggregator_distance_bits_bucket", "1.0"],
        found["aggregator_distance_bits_bucket", "2.0"],
    ) == (
        0,
        1,
    )


def test_verdicts_are_counted_by_policy_profile() -> None:
    """Every profile of the service has a series from the start."""
    metrics = Metrics(("default", "agency"))
    metrics.record_answer(replace(answer(Outcome("new")), profile="agency"))
    found = samples(metrics)

    assert found["aggregator_articles_total", "agency", "new"] == 1
    assert found["aggregator_articles_total", "agency", "duplicate"] == 0
    assert found["aggregator_articles_total", "default", "new"] == 0


def test_an_exact_distance_of_zero_is_observed() -> None:
    """Zero bits is a distance; None is not counted."""
    metrics = Metrics()
    metrics.record_answer(answer(Outcome("duplicate", distance=0)))

    assert samples(metrics)["aggregator_distance_bits_bucket", "0.0"] == 1


def test_two_applications_do_not_share_counters() -> None:
    """Each has a separate registry."""
    one, other = Metrics(), Metrics()
    one.record_answer(answer(Outcome("new")))

    assert samples(one)["aggregator_articles_total", "default", "new"] == 1
    assert samples(other)["aggregator_articles_total", "default", "new"] == 0


def test_the_background_process_exports_itself_only() -> None:
    """No series of requests that it never answers."""
    names = {name for name, *_ in samples(BackgroundMetrics())}

    assert "process_resident_memory_bytes" in names
    assert not any(name.startswith("aggregator_requests") for name in names)


def test_every_row_of_the_table_is_complete() -> None:
    """Sorted and unique; counters have the name that queries use."""
    rows = [line.strip("| ").split(" | ") for line in markdown_table().splitlines()[2:]]
    names = [row[0].strip("`") for row in rows]

    assert names == sorted(set(names))
    assert all(
        name.endswith("_total") == (row[1] == "counter") for name, row in zip(names, rows, strict=True)
    )
    assert {"aggregator_requests_total", "aggregator_store_ready", "aggregator_index_segments"} <= set(names)
    assert all(row[-1].endswith(".") for row in rows)


async def test_the_state_of_a_store_is_its_own(store: Store) -> None:
    """A store that answers is passed on."""
    info, expected = await store_info(store), await store.info()

    assert info.ready
    assert (info.kind, info.version) == (expected.kind, expected.version)


async def test_a_store_that_hangs_is_not_ready() -> None:
    """The scrape is answered, with the reason; the limit leaves time for it."""
    assert 0 < http_metrics.STORE_TIMEOUT_S < 1

    class Hanging:
        async def info(self) -> StoreInfo:
            await asyncio.Event().wait()
            raise AssertionError

    info = await store_info(cast(Store, Hanging()), 0.01)
    assert (info.ready, info.memory_bytes) == (False, 0)
    assert "did not answer in time (0.01 s)" in repr(info)


@pytest.mark.parametrize(("kind", "suffix"), [("counter", "_total"), ("gauge", "")])
def test_a_spec_becomes_a_family_with_its_samples(kind: str, suffix: str) -> None:
    """One sample per combination of labels."""
    spec: MetricSpec[object] = MetricSpec(
        "ferries", "counter" if kind == "counter" else "gauge", "Ferries.",
        lambda store, _: [(("late",), 2.0), (("on time",), store.memory_bytes)], ("state",),
    )  # fmt: skip
    family = spec.to_family(READY, None)

    assert (family.type, family.documentation) == (kind, "Ferries.")
    assert [(s.name, s.labels, s.value) for s in family.samples] == [
        (f"ferries{suffix}", {"state": "late"}, 2.0),
        (f"ferries{suffix}", {"state": "on time"}, 4096.0),
    ]


def test_before_the_first_scrape_there_are_no_metrics() -> None:
    """The registry collects once when the collector is registered."""
    assert list(BackgroundMetrics().collect()) == []


@pytest.mark.parametrize(("learning", "values"), [(None, []), (LearningStatus(2.5), [216_000.0])])
def test_the_time_that_the_detector_knows(learning: LearningStatus | None, values: list[float]) -> None:
    """No sample in a process that has not led: another process has it."""
    spec = next(s for s in http_metrics.BACKGROUND_METRICS if s.name == "aggregator_detector_known_seconds")
    background = cast(Background, SimpleNamespace(detector=SimpleNamespace(learning=learning)))

    samples = spec.to_family(READY, background).samples

    assert [sample.value for sample in samples] == values


@pytest.mark.parametrize(("made_ms", "values"), [(0, []), (1_795_164_000_500, [1_795_164_000.5])])
def test_the_time_of_the_last_backup(made_ms: int, values: list[float]) -> None:
    """No sample before the first one: no alert where others back the store up."""
    name = "aggregator_last_backup_timestamp_seconds"
    spec = next(s for s in http_metrics.BACKGROUND_METRICS if s.name == name)
    background = cast(Background, SimpleNamespace(maintenance=SimpleNamespace(last_backup_ms=made_ms)))

    assert [sample.value for sample in spec.to_family(READY, background).samples] == values


def test_a_process_that_handles_requests_exports_the_store_and_its_index() -> None:
    """Nothing is read that this process does not have."""
    metrics = BackgroundMetrics()
    metrics.render(READY, cast(Service, FakeService()))
    values = {s.name: s.value for family in metrics.collect() for s in family.samples}

    names = {
        f"{spec.name}_total" if spec.kind == "counter" else spec.name for spec in http_metrics.STORE_METRICS
    }
    assert {name: values[name] for name in sorted(names)} == {
        "aggregator_store_memory_bytes": 4096.0,
        "aggregator_store_memory_limit_bytes": 0.0,
        "aggregator_store_ready": 1.0,
        "aggregator_store_warning": 0.0,
    }
    assert values["aggregator_index_lookups_total"] == 0.0
    assert "aggregator_leader" not in values
