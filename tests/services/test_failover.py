"""Failover of a cluster primary under load: the crawler sees retries only."""

from __future__ import annotations

import time

import aiohttp
import pytest

from aggregator.index import keys
from tests.support.cluster import Cluster
from tests.support.crawler import Crawler
from tests.support.server_fixture import serving

LAG_S = 0.5


@pytest.mark.services
@pytest.mark.timeout(120)
async def test_a_killed_primary_costs_only_retries(cluster: Cluster) -> None:
    """SIGKILL of the node with the index: its replica takes over, and acknowledged articles are stored.

    Replication is asynchronous, so articles acknowledged in the last 0.5 s before the kill may be lost. They
    can be posted again.
    """
    killed_s = 0.0
    async with serving(store_url=cluster.url, log_level="ERROR") as url, aiohttp.ClientSession() as session:
        async with session.get(f"{url}/readyz") as response:
            space = next(s for s in (await response.json())["spaces"] if s.startswith("xx"))
        crawler = Crawler(session, url)
        await crawler.post("first", "Before anything else.")

        async def kill() -> None:
            nonlocal killed_s
            killed_s = time.monotonic()
            cluster.kill(cluster.primary_of(keys.stream(keys.tag(space, 0))))

        report = await crawler.crawl_during(kill, before_s=1.0, after_s=5.0)

        answered = [s for _, s in report.acknowledged.values()]
        print(f"{len(answered)} answered, {report.refusals} refusals, {len(report.lost)} lost")
        assert report.refusals > 0, "the kill had no effect"
        assert max(answered) > killed_s + 1.0, "the replica did not take over"
        assert len(report.lost) == report.lost_after(killed_s - LAG_S)
        assert not report.changed
        for id_ in report.lost:
            await crawler.post(id_, f"Posted again: {id_}.")
            async with session.get(f"{url}/v1/articles/{id_}") as response:
                assert response.status == 200
