"""A scrape of one worker tells of all of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from aggregator.http.metrics.multiprocess import PeerMetrics, merge_expositions
from tests.support.server_fixture import serving

ONE = b"""# HELP a_total Things.
# TYPE a_total counter
a_total{kind="x{,}"} 1.0
# HELP b Depth.
# TYPE b gauge
b 2.0
"""
TWO = b"""# HELP a_total Things.
# TYPE a_total counter
a_total{kind="x{,}"} 5.0
a_total{kind="y"} 7.0
"""


def test_series_of_all_are_told_apart() -> None:
    """Each family once, and in it the samples of all."""
    assert (
        merge_expositions({"1": TWO, "0": ONE})
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


async def test_who_is_gone_is_left_out_and_who_follows_takes_its_place(tmp_path: Path) -> None:
    """A worker that ended without a word holds up nobody."""

    async def one() -> bytes:
        return ONE

    async def two() -> bytes:
        return TWO

    first = PeerMetrics(tmp_path, "0")
    old, new = [await PeerMetrics(tmp_path, "1").listen(told) for told in (one, two)]
    alone = await first.scrape_all(one)
    old.close()
    after = await first.scrape_all(one)
    new.close()
    await new.wait_closed()

    assert alone == after == merge_expositions({"0": ONE, "1": TWO})
    assert await first.scrape_all(one) == merge_expositions({"0": ONE})


@pytest.mark.services
async def test_a_scrape_of_the_shared_port_counts_every_article(tmp_path: Path) -> None:
    """Whichever worker took the article, and whichever is asked."""
    connector = aiohttp.TCPConnector(force_close=True)
    text = ""
    async with (
        serving("--workers=2", data_dir=tmp_path, log_level="ERROR") as url,
        aiohttp.ClientSession(connector=connector) as session,
    ):
        for n in range(20):
            async with session.post(
                url + "/v1/articles", json={"id": f"a{n}", "text": f"Ferry {n}."}
            ) as posted:
                assert posted.status in (200, 201)
        async with asyncio.timeout(60):  # the scheduled work begins a moment after the first answers
            while "aggregator_leader{" not in text:
                async with session.get(url + "/metrics") as scraped:
                    text = await scraped.text()

    families = {family.name: family.samples for family in text_string_to_metric_families(text)}
    assert sum(s.value for s in families["aggregator_articles"] if s.name.endswith("_total")) == 20
    assert {s.labels["worker"] for s in families["aggregator_store_ready"]} == {"0", "1"}
    assert {s.labels["worker"]: s.value <= 1 for s in families["aggregator_leader"]} == {"scheduler": True}
