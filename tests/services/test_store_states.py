"""A store that is demoted, restarted or reconfigured: the service answers 503, never wrongly."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from aggregator.store.embedded import EmbeddedServer
from tests.support.cluster import free_ports, until
from tests.support.factories import edited, story
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving
from tests.support.stores import direct_client

FIRST = {"id": "first", "text": story(1, 25), "lang": "eo"}
COPY = {"id": "copy", "text": edited(story(1, 25), 1), "lang": "eo"}


class Site:
    """Client of one service."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def request(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        """Status and body."""
        async with self._session.request(method, self._url + path, json=body) as response:
            return response.status, await response.json()

    async def until_ready(self, status: int, text: str = "") -> None:
        """Poll /readyz until it answers ``status`` with a detail that contains ``text``."""
        async with asyncio.timeout(HANG_LIMIT_S):
            while True:
                current, body = await self.request("GET", "/readyz")
                if current == status and text in str(body.get("detail", "")):
                    return
                await asyncio.sleep(0.02)

    async def assert_serves(self) -> None:
        """The stored article is found, and its copy is a duplicate."""
        assert (await self.request("POST", "/v1/articles", FIRST))[1]["verdict"] == "new"
        assert (await self.request("GET", "/v1/articles/first"))[0] == 200
        assert (await self.request("POST", "/v1/articles?dry_run=true", COPY))[1]["verdict"] == "duplicate"

    async def assert_unavailable(self, text: str) -> None:
        """Every request that needs the store is answered 503."""
        await self.until_ready(503, text)
        calls = [
            ("POST", "/v1/articles", FIRST),
            ("POST", "/v1/articles", {"id": "new", "text": story(2, 25)}),
        ]
        calls += [
            ("POST", "/v1/articles?dry_run=true", COPY),
            ("POST", "/v1/related", {"text": COPY["text"]}),
        ]
        paths = [
            "/v1/articles/first",
            "/v1/articles/first/copies",
            "/v1/articles/first/related",
            "/v1/events",
        ]
        for call in calls + [("GET", path, None) for path in paths]:
            status, body = await self.request(*call)
            assert status == 503, (call, body)


@pytest.fixture
async def site_of() -> AsyncIterator[Callable[[str], Awaitable[Site]]]:
    """A function that starts a service on a store and returns its client."""
    async with aiohttp.ClientSession() as session:
        running = []

        async def start(url: str) -> Site:
            service = serving(store_url=url, log_level="ERROR")
            site = Site(session, await service.__aenter__())
            running.append(service)
            return site

        yield start
        for service in running:
            await service.__aexit__(None, None, None)


@pytest.mark.services
async def test_a_demoted_primary_makes_the_service_unavailable(
    tmp_path: Path, site_of: Callable[[str], Awaitable[Site]]
) -> None:
    """Primary and replica swap roles; the service does not answer from the replica.

    Not even when the new primary, and therefore the replica, is empty. An eviction policy that is set at run
    time is detected too.
    """
    port, other_port = free_ports(2)
    with (
        EmbeddedServer(tmp_path / "a", config_overrides=_server_config(port)) as one,
        EmbeddedServer(tmp_path / "b", config_overrides=_server_config(other_port)) as other,
        direct_client(one.url) as here,
        direct_client(other.url) as there,
    ):
        there.replicaof("127.0.0.1", port)
        site = await site_of(f"redis://127.0.0.1:{port}")
        await site.assert_serves()
        until(lambda: there.info()["master_link_status"] == "up", "the replica does not follow")
        here.wait(1, 5000)

        there.replicaof("NO", "ONE")
        here.replicaof("127.0.0.1", other_port)
        await site.assert_unavailable("is a read-only replica; point store_url to the primary")
        there.flushall()
        until(lambda: here.dbsize() == 0, "the flush was not replicated")
        await site.assert_unavailable("is a read-only replica")

        here.replicaof("NO", "ONE")
        await site.until_ready(200)
        await site.assert_serves()

        here.config_set("maxmemory-policy", "allkeys-lru")
        await site.until_ready(503, "maxmemory-policy allkeys-lru, which silently evicts articles")
        here.config_set("maxmemory-policy", "noeviction")
        await site.until_ready(200)


@pytest.mark.services
async def test_a_loading_store_makes_the_service_unavailable(
    tmp_path: Path, site_of: Callable[[str], Awaitable[Site]]
) -> None:
    """Killed and restarted with an append-only file that takes long to load: 503 until it is loaded."""
    (port,) = free_ports(1)
    slow = {"key-load-delay": "2000", "loading-process-events-interval-bytes": "1024"}
    with (
        EmbeddedServer(tmp_path, config_overrides=_server_config(port)) as server,
        direct_client(server.url) as client,
    ):
        site = await site_of(f"redis://127.0.0.1:{port}")
        await site.assert_serves()
        client.mset({f"ballast{i}": "x" * 100 for i in range(3000)})
        client.bgrewriteaof()
        until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the log is not rewritten")
        until(lambda: bool(client.info()["aof_base_size"]), "the log is not rewritten")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: server.pid is None, "the store did not end")
        server._config_overrides.update(slow)  # for the next start
        server.restart_if_dead()

        await site.until_ready(503, "still loading")
        await site.assert_unavailable("still loading")

        client.config_set("key-load-delay", 0)
        await site.until_ready(200)
        await site.assert_serves()


def _server_config(port: int) -> dict[str, str]:
    return {"port": str(port), "bind": "127.0.0.1", "repl-diskless-sync-delay": "0"}
