"""A primary of a cluster is killed while articles come in: the crawler sees retries, nothing worse."""

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
async def test_a_primary_that_is_killed_costs_retries_only(cluster: Cluster) -> None:
    """SIGKILL of the node that has the index: its replica takes over, and what was answered is there.

    Replication is asynchronous, so what was answered in the last moment before the kill may be lost; all
    that was answered half a second earlier may not. What is lost can be posted again, as any article.
    """
    killed_s = 0.0
    async with serving(store_url=cluster.url, log_level="ERROR") as url, aiohttp.ClientSession() as session:
        async with session.get(f"{url}/readyz") as answer:
            space = next(s for s in (await answer.json())["spaces"] if s.startswith("xx"))
        crawler = Crawler(session, url)
        await crawler.post("first", "Before anything else.")

        async def kill() -> None:
            nonlocal killed_s
            killed_s = time.monotonic()
            cluster.kill(cluster.primary_of(keys.stream(keys.tag(space, 0))))

        account = await crawler.through(kill, before_s=1.0, after_s=5.0)

        answered = [s for _, s in account.acknowledged.values()]
        print(f"{len(answered)} answered, {account.refusals} refusals, {len(account.lost)} lost")
        assert account.refusals > 0, "the kill was not noticed"
        assert max(answered) > killed_s + 1.0, "nobody took over"
        assert len(account.lost) == account.lost_after(killed_s - LAG_S)
        assert not account.changed
        for id_ in account.lost:
            await crawler.post(id_, f"Posted again: {id_}.")
            async with session.get(f"{url}/v1/articles/{id_}") as answer:
                assert answer.status == 200
