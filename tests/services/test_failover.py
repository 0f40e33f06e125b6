"""Failover of a cluster primary under load: the crawler sees retries only."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import pytest

from aggregator.index import keys
from tests.support.cluster import Cluster
from tests.support.crawler import Crawler
from tests.support.server_fixture import serving

# Articles of the crawl before the kill, and after it.
BEFORE, AFTER = 40, 80


@pytest.mark.services
async def test_a_killed_primary_costs_only_retries(cluster: Cluster) -> None:
    """SIGKILL of the node with the index: its replica takes over, and acknowledged articles are stored.

    Replication is asynchronous, so articles that were acknowledged after the replica's last confirmation may
    be lost. They can be posted again.
    """
    confirmed_s = killed_s = 0.0
    async with serving(store_url=cluster.url, log_level="ERROR") as url, aiohttp.ClientSession() as session:
        async with session.get(f"{url}/readyz") as response:
            space = next(s for s in (await response.json())["spaces"] if s.startswith("xx"))
        crawler = Crawler(session, url)
        await crawler.post("first", "Before anything else.")

        async def kill() -> None:
            nonlocal confirmed_s, killed_s
            primary = cluster.primary_of(keys.tag(space, 0) + keys.STREAM)
            await crawler.until_acknowledged(BEFORE)
            confirmed_s = time.monotonic()
            await asyncio.to_thread(cluster.wait_for_replica, primary)
            await asyncio.to_thread(cluster.kill, primary)
            killed_s = time.monotonic()
            await crawler.until_acknowledged(AFTER)

        report = await crawler.crawl_during(kill)

        answered = [s for _, s in report.acknowledged.values()]
        print(f"{len(answered)} answered, {report.refusals} refusals, {len(report.lost)} lost")
        assert report.refusals > 0, "the kill had no effect"
        assert sum(answered_s > killed_s for answered_s in answered) >= AFTER, "the replica did not take over"
        assert len(report.lost) == report.lost_after(confirmed_s)
        assert not report.changed
        for id_ in report.lost:
            await crawler.post(id_, f"Posted again: {id_}.")
            async with session.get(f"{url}/v1/articles/{id_}") as response:
                assert response.status == 200
