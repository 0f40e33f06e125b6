"""Metrics that are read at scrape time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from aggregator.app import Background, Service
from aggregator.events.detection.known_history import LearningStatus
from aggregator.http.metrics import collectors
from aggregator.http.metrics.collectors import MetricSpec, ScrapeContext, ServiceCollector, store_info
from aggregator.store.base import Store, StoreInfo
from tests.support.fake_service import FakeService

READY = StoreInfo("memory", "1", 4096, "nothing is kept", ready=True)


async def test_the_state_of_a_store_is_its_own(store: Store) -> None:
    """A store that answers is passed on."""
    info, expected = await store_info(store), await store.info()

    assert info.ready
    assert (info.kind, info.version) == (expected.kind, expected.version)


async def test_a_store_that_hangs_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scrape is answered, with the reason; the limit leaves time for it."""
    assert 0 < collectors.STORE_TIMEOUT_S < 1
    monkeypatch.setattr(collectors, "STORE_TIMEOUT_S", 0.01)

    class Hanging:
        async def info(self) -> StoreInfo:
            await asyncio.Event().wait()
            raise AssertionError

    info = await store_info(cast(Store, Hanging()))
    assert (info.ready, info.memory_bytes) == (False, 0)
    assert "did not answer within 0.01 s" in repr(info)


@pytest.mark.parametrize(("kind", "suffix"), [("counter", "_total"), ("gauge", "")])
def test_a_spec_becomes_a_family_with_its_samples(kind: str, suffix: str) -> None:
    """One sample per combination of labels."""
    spec = MetricSpec(
        "ferries", "counter" if kind == "counter" else "gauge", "Ferries.",
        lambda context: [(("late",), 2.0), (("on time",), context.store.memory_bytes)], ("state",),
    )  # fmt: skip
    family = spec.to_family(ScrapeContext(READY))

    assert (family.type, family.documentation) == (kind, "Ferries.")
    assert [(s.name, s.labels, s.value) for s in family.samples] == [
        (f"ferries{suffix}", {"state": "late"}, 2.0),
        (f"ferries{suffix}", {"state": "on time"}, 4096.0),
    ]


def test_before_the_first_scrape_there_are_no_metrics() -> None:
    """The registry collects once when the collector is registered."""
    assert list(ServiceCollector().collect()) == []


@pytest.mark.parametrize(("learning", "values"), [(None, []), (LearningStatus(2.5), [216_000.0])])
def test_the_time_that_the_detector_knows(learning: LearningStatus | None, values: list[float]) -> None:
    """No sample in a process that has not led: another process has it."""
    spec = next(s for s in collectors.BACKGROUND_METRICS if s.name == "aggregator_detector_known_seconds")
    background = cast(Background, SimpleNamespace(detector=SimpleNamespace(learning=learning)))

    samples = spec.to_family(ScrapeContext(READY, background=background)).samples

    assert [sample.value for sample in samples] == values


def test_a_process_that_handles_requests_exports_the_store_and_its_index() -> None:
    """Nothing is read that this process does not have."""
    collector = ServiceCollector()
    collector.context = ScrapeContext(READY, service=cast(Service, FakeService()))
    values = {s.name: s.value for family in collector.collect() for s in family.samples}

    names = {
        f"{spec.name}_total" if spec.kind == "counter" else spec.name for spec in collectors.STORE_METRICS
    }
    assert {name: values[name] for name in sorted(names)} == {
        "aggregator_store_memory_bytes": 4096.0,
        "aggregator_store_ready": 1.0,
        "aggregator_store_warning": 0.0,
    }
    assert values["aggregator_index_lookups_total"] == 0.0
    assert "aggregator_leader" not in values
