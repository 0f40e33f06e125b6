"""Aggregation of metrics over the processes of a service."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from aggregator.errors import AggregatorError
from aggregator.http.peer_metrics import (
    RESTARTS_HELP,
    RESTARTS_LABEL,
    RESTARTS_NAME,
    SUPERVISOR,
    PeerMetrics,
    RestartCounts,
    Totals,
    merge_expositions,
)
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving

FIRST_TEXT = b"""# HELP a_total Things.
# TYPE a_total counter
a_total{kind="x{,}"} 1.0
# HELP b Depth.
# TYPE b gauge
b 2.0
"""
SECOND_TEXT = b"""# HELP a_total Things.
# TYPE a_total counter
a_total{kind="x{,}"} 5.0
a_total{kind="y"} 7.0
"""


def test_series_are_labelled_per_process() -> None:
    """Each family once, with the samples of all processes."""
    assert (
        merge_expositions({"1": SECOND_TEXT, "0": FIRST_TEXT})
        == b"""# HELP a_total Things.
# TYPE a_total counter
a_total{worker="0",kind="x{,}"} 1.0
a_total{worker="1",kind="x{,}"} 5.0
a_total{worker="1",kind="y"} 7.0
# HELP b Depth.
# TYPE b gauge
b{worker="0"} 2.0
"""
    )


@pytest.mark.integration
async def test_a_stopped_process_is_omitted_and_its_successor_replaces_it(tmp_path: Path) -> None:
    """A process that died delays no scrape."""

    async def first_text() -> bytes:
        return FIRST_TEXT

    async def second_text() -> bytes:
        return SECOND_TEXT

    first = PeerMetrics(tmp_path, "0")
    old, new = [await PeerMetrics(tmp_path, "1").listen(text) for text in (first_text, second_text)]
    before = await first.scrape_all(first_text)
    old.close()
    after = await first.scrape_all(first_text)
    new.close()
    await new.wait_closed()

    assert before == after == merge_expositions({"0": FIRST_TEXT, "1": SECOND_TEXT})
    assert await first.scrape_all(first_text) == merge_expositions({"0": FIRST_TEXT})


@pytest.mark.services
async def test_a_process_whose_service_was_killed_says_so(tmp_path: Path) -> None:
    """The successor has removed the directory: one sentence for the log, no traceback."""

    async def text() -> bytes:
        return FIRST_TEXT

    with pytest.raises(AggregatorError, match="the service was killed"):
        await PeerMetrics(tmp_path / "gone", "0").listen(text)


@pytest.mark.integration
async def test_a_scrape_of_the_shared_port_counts_every_article(tmp_path: Path) -> None:
    """Regardless of which worker stored the article and which one is scraped."""
    connector = aiohttp.TCPConnector(force_close=True)
    text = ""
    async with (
        serving("--workers=2", "--analysis-processes=0", data_dir=tmp_path, log_level="ERROR") as url,
        aiohttp.ClientSession(connector=connector) as session,
    ):
        for n in range(20):
            async with session.post(
                url + "/v1/articles", json={"id": f"a{n}", "text": f"Ferry {n}."}
            ) as posted:
                assert posted.status in (200, 201)
        async with asyncio.timeout(HANG_LIMIT_S):  # background work starts after the first responses
            while "aggregator_leader{" not in text:
                async with session.get(url + "/metrics") as scraped:
                    text = await scraped.text()
                await asyncio.sleep(0.1)

    families = {family.name: family.samples for family in text_string_to_metric_families(text)}
    assert sum(s.value for s in families["aggregator_articles"] if s.name.endswith("_total")) == 20
    assert {s.labels["worker"] for s in families["aggregator_store_ready"]} == {"0", "1"}
    assert {s.labels["worker"]: s.value <= 1 for s in families["aggregator_leader"]} == {"scheduler": True}


class OneFamily(Collector):
    """The restarts that a web process counts."""

    def collect(self) -> list[CounterMetricFamily]:
        """One sample."""
        family = CounterMetricFamily(RESTARTS_NAME, RESTARTS_HELP, labels=[RESTARTS_LABEL])
        family.add_metric(["analysis"], 4)
        return [family]


async def test_counts_are_merged_into_one_family() -> None:
    """The text that is written here has the form of the metrics library; all kinds start at 0."""
    registry = CollectorRegistry()
    registry.register(OneFamily())
    counts = RestartCounts()
    counts.add("worker")
    counts.add("worker")

    text = merge_expositions({"0": generate_latest(registry), SUPERVISOR: await counts.render()})
    (family,) = text_string_to_metric_families(text.decode())

    assert (family.name, family.type, family.documentation) == (RESTARTS_NAME, "counter", RESTARTS_HELP)
    assert {(s.name, s.labels["worker"], s.labels[RESTARTS_LABEL], s.value) for s in family.samples} == {
        (f"{RESTARTS_NAME}_total", "0", "analysis", 4.0),
        (f"{RESTARTS_NAME}_total", SUPERVISOR, "worker", 2.0),
        (f"{RESTARTS_NAME}_total", SUPERVISOR, "background", 0.0),
        (f"{RESTARTS_NAME}_total", SUPERVISOR, "store", 0.0),
    }


EXPOSITION = b"""\
# HELP a_total Things.
# TYPE a_total counter
a_total{code="bad_input",worker="0"} 3.0
a_total{code="bad_input",worker="1"} 4.0
a_total{code="say \\"no\\", {x}",worker="1"} 1.0
a_total{code="none",worker="1"} 0.0
b 2.5e+06
process_start_time_seconds{worker="0"} 1.7e+09
process_start_time_seconds{worker="1"} 1.6e+09
"""


def test_series_are_summed_over_processes() -> None:
    """Whatever their labels contain."""
    totals = Totals(EXPOSITION)

    assert (totals.sum("a_total"), totals.sum("b")) == (8, 2_500_000)
    assert totals.least("process_start_time_seconds") == 1.6e9


def test_an_unknown_series_is_zero() -> None:
    """A process without background services does not export theirs."""
    totals = Totals(b"")

    assert (totals.sum("x"), totals.least("x")) == (0, None)
