"""Failover of a primary under load, by a cluster or by Sentinel: the crawler sees retries only."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
import redis

from aggregator.index import keys
from aggregator.store.embedded import EmbeddedServer
from tests.support.cluster import Cluster, free_ports, until
from tests.support.crawler import Crawler
from tests.support.server_fixture import serving
from tests.support.stores import direct_client

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


@pytest.mark.services
@pytest.mark.redis
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGSTOP])
async def test_replicated_loses_nothing_when_sentinel_promotes_a_replica(
    tmp_path: Path, stop: signal.Signals
) -> None:
    """A primary that is killed or hangs: all that was acknowledged is in the promoted one, which is used."""
    with ExitStack() as stack:
        ports = free_ports(4)
        servers = [
            stack.enter_context(EmbeddedServer(tmp_path / str(port), config_overrides=_replica_of(port)))
            for port in ports[:3]
        ]
        clients = [stack.enter_context(direct_client(server.url)) for server in servers]
        for client in clients[1:]:
            client.replicaof("127.0.0.1", ports[0])
        until(lambda: all(c.info()["master_link_status"] == "up" for c in clients[1:]), "no replicas")
        stack.enter_context(_sentinel(tmp_path / "sentinel.conf", ports[3], ports[0]))
        url = f"redis+sentinel://127.0.0.1:{ports[3]}/news/0?replicated=all"
        async with serving(store_url=url, log_level="ERROR") as service, aiohttp.ClientSession() as session:
            crawler = Crawler(session, service)

            async def fault() -> None:
                await crawler.until_acknowledged(BEFORE)
                assert servers[0].pid is not None
                os.kill(servers[0].pid, stop)
                await crawler.until_acknowledged(AFTER)

            try:
                report = await crawler.crawl_during(fault)
            finally:
                if servers[0].pid is not None:
                    os.kill(servers[0].pid, signal.SIGCONT)
            assert not report.lost and not report.changed
            async with session.get(f"{service}/readyz") as response:
                assert (await response.json())["status"] == "ready"


def _replica_of(port: int) -> dict[str, str]:
    return {"port": str(port), "bind": "127.0.0.1", "repl-diskless-sync-delay": "0", "appendfsync": "always"}


@contextmanager
def _sentinel(path: Path, port: int, primary: int) -> Iterator[None]:
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    path.write_text(
        f"port {port}\nbind 127.0.0.1\nsentinel monitor news 127.0.0.1 {primary} 1\n"
        "sentinel down-after-milliseconds news 1000\nsentinel failover-timeout news 3000\n"
    )
    with subprocess.Popen([binary, str(path), "--sentinel"], stdout=subprocess.DEVNULL) as process:
        with redis.Redis(port=port) as client:
            until(lambda: _knows_replicas(client), "the Sentinel does not know the replicas")
        yield
        process.terminate()


def _knows_replicas(client: redis.Redis) -> bool:
    with suppress(redis.ConnectionError):
        return len(client.execute_command("SENTINEL", "REPLICAS", "news")) == 2  # type: ignore[no-untyped-call]
    return False
