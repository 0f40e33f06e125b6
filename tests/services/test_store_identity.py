"""A store that was emptied, exchanged or set back is reported; a first start, restore, deletion are not."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import redis

from aggregator.index.upkeep.format_version import OWN_ENTRY
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.identity import IDENTITY_KEY, MEMORY_NAME, read_memory
from tests.support.factories import edited, story
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import UNHURRIED, serving
from tests.support.stores import direct_client

KEY = "k" * 40
ADMIN = {"Authorization": f"Bearer {KEY}"}
OLD = {"id": "old", "text": story(1, 25), "lang": "eo"}
COPY = {"id": "copy", "text": edited(story(1, 25), 1), "lang": "eo"}
Change = Callable[[redis.Redis], None]


def emptied(client: redis.Redis) -> None:
    """As by FLUSHALL, or another empty server behind the address."""
    client.flushall()


def exchanged(client: redis.Redis) -> None:
    """The store of another installation, with its own API keys."""
    kept = {key: client.dump(key) for key in client.keys("{access}keys")}
    client.flushall()
    client.set("{format}", OWN_ENTRY.value)
    client.set(IDENTITY_KEY, b"\x92\xa5other\x90")
    for key in kept:
        client.set(key, b"\x80")


def lost_keys(client: redis.Redis) -> None:
    """Without its API keys."""
    client.delete("{access}keys")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedServer]:
    """A separate store server, and an admin key for its services."""
    monkeypatch.setenv("AGGREGATOR_BOOTSTRAP_KEY", KEY)
    with EmbeddedServer(tmp_path / "server") as running:
        yield running


@pytest.fixture
def client(server: EmbeddedServer) -> Iterator[redis.Redis]:
    """A direct client of it."""
    with direct_client(server.url) as opened:
        yield opened


@asynccontextmanager
async def installation(server: EmbeddedServer, directory: Path, *options: str) -> AsyncIterator[Site]:
    """A service that remembers its store in ``directory``."""
    async with (
        serving(*options, store_url=server.url, data_dir=directory, log_level="ERROR") as url,
        aiohttp.ClientSession(url, headers=ADMIN) as session,
    ):
        yield Site(session, directory)


class Site:
    """Client of one service."""

    def __init__(self, session: aiohttp.ClientSession, directory: Path) -> None:
        self.session, self._memory = session, directory / MEMORY_NAME

    async def post(self, article: dict[str, str], **headers: str) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        async with self.session.post("/v1/articles", json=article, headers=headers) as response:
            return response.status, await response.json()

    async def add_key(self, command: Callable[..., Any]) -> dict[str, str]:
        """Headers with a new stored key, which the service accepts: that takes up to 2 s."""
        text = await command("keys", "add", "crawler", "--role", "crawler")
        headers = {"Authorization": f"Bearer {text.split()[-1]}"}
        async with asyncio.timeout(HANG_LIMIT_S):
            while (await self.session.get("/v1/articles/unknown", headers=headers)).status == 401:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return headers

    async def state(self) -> tuple[int, str]:
        """Status of /readyz, and why it is not simply ready."""
        async with self.session.get("/readyz") as response:
            body = await response.json()
            return response.status, body.get("detail") or body.get("degraded") or ""

    async def until(self, status: int, text: str) -> None:
        """Poll ``state``."""
        async with asyncio.timeout(HANG_LIMIT_S):
            while True:
                found = await self.state()
                if found[0] == status and (text in found[1] if text else not found[1]):
                    return
                await asyncio.sleep(0.05)

    async def fill(self, count: int, start: int = 0) -> None:
        """Post articles; returns when the service has saved that the store took so many."""
        for i in range(start, count):
            assert (await self.post({"id": f"n{i}", "text": story(100 + i, 25), "lang": "eo"}))[0] == 201
        async with asyncio.timeout(HANG_LIMIT_S):
            while all(known.taken < count for known in read_memory(self._memory).values()):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@pytest.fixture
def command(server: EmbeddedServer, tmp_path: Path) -> Callable[..., Any]:
    """Runs ``aggregator`` with the settings of the service; its output."""

    async def run(*arguments: str, code: int = 0) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "aggregator", *arguments),
            stdout=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                **UNHURRIED,
                "REDIS_URL": server.url,
                "AGGREGATOR_DATA_DIR": str(tmp_path / "memory"),
            },
        )
        output, _ = await process.communicate()
        assert process.returncode == code, output.decode()
        return output.decode()

    return run


INCIDENTS = [
    (emptied, "was emptied"),
    (exchanged, "another installation"),
    (lost_keys, "has lost its API keys"),
]


@pytest.mark.services
@pytest.mark.parametrize(("change", "sentence"), INCIDENTS)
async def test_a_running_process_goes_on_and_tells(
    change: Change, sentence: str, server: EmbeddedServer, client: redis.Redis, tmp_path: Path, command: Any
) -> None:
    """The very next post is marked; it is stored unless the store is another installation's."""
    foreign = change is exchanged
    async with installation(server, tmp_path / "memory") as site:
        key = await site.add_key(command)
        assert (await site.post(OLD, **key))[1]["unchecked"] is False
        await site.fill(3)

        change(client)
        if change is lost_keys:
            await site.until(200, sentence)
        status, answer = await site.post(COPY, **key)
        while status == 503:  # refused before it knew that nothing must be written there
            status, answer = await site.post(COPY, **key)

        assert answer["unchecked"] and answer["stored"] is not foreign, answer
        await site.until(200, sentence)
        assert (await site.session.get("/metrics")).ok
        assert sentence in await command("doctor", code=3)
        assert (await site.session.get("/v1/articles/copy")).status == (404 if foreign else 200)

        await command("doctor", "--accept-store")
        await site.until(200, "")
        async with asyncio.timeout(HANG_LIMIT_S):
            while (found := await site.post(OLD))[0] == 401:  # noqa: ASYNC110  keys known for 2 s
                await asyncio.sleep(0.05)
        assert found[1]["unchecked"] is False


@pytest.mark.services
async def test_a_key_that_nobody_used_is_valid_until_the_empty_store_is_accepted(
    server: EmbeddedServer, client: redis.Redis, tmp_path: Path, command: Any
) -> None:
    """A process reads all keys at its start, so that no crawler is refused for an accident of the store."""
    async with installation(server, tmp_path / "memory") as site:
        key = await site.add_key(command)
        await site.fill(1)
    async with installation(server, tmp_path / "memory") as site:
        emptied(client)
        await site.until(200, "was emptied")
        assert (await site.post(COPY, **key))[0] == 201

        assert "keys of before are refused" in await command("doctor", "--accept-store")
        await site.until(200, "")
        async with asyncio.timeout(HANG_LIMIT_S):
            while (await site.post(COPY, **key))[0] != 401:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@pytest.mark.services
@pytest.mark.parametrize(("change", "sentence"), INCIDENTS)
async def test_a_process_that_starts_is_not_ready(
    change: Change, sentence: str, server: EmbeddedServer, client: redis.Redis, tmp_path: Path, command: Any
) -> None:
    """It remembers by its data directory; keys that are gone open nothing, and it is ready once accepted."""
    async with installation(server, tmp_path / "memory") as site:
        await site.add_key(command)
        await site.fill(3)
    change(client)
    async with installation(server, tmp_path / "memory") as site:
        status, said = await site.state()
        assert status == 503 and sentence in said, (status, said)
        assert (await site.session.get("/v1/events", headers={"Authorization": "Bearer x"})).status == 401
        await command("doctor", "--accept-store")
        await site.until(200, "")


@pytest.mark.services
@pytest.mark.parametrize("running", [True, False])
async def test_a_store_that_was_set_back_is_told(
    running: bool, server: EmbeddedServer, client: redis.Redis, tmp_path: Path, command: Any
) -> None:
    """An old copy of the same store, put back; ``aggregator restore`` is silent."""
    memory = tmp_path / "memory"
    async with installation(server, memory) as site:
        await site.post(OLD)
        await site.fill(2)
        copies = {key: client.dump(key) for key in client.scan_iter()}
        await command("backup", str(tmp_path / "backups"))
        await site.fill(5, 2)
        if running:
            put_back(client, copies)
            assert (await site.post(COPY))[1]["unchecked"]
            await site.until(200, "was set back")
    if not running:
        put_back(client, copies)
    async with installation(server, memory) as site:
        status, said = await site.state()
        assert status == 503 and ("was set back" in said or "running processes know" in said), said
    client.delete("{events}leader", "{upkeep}leader")
    await command("restore", str(tmp_path / "backups"), "--replace")
    async with installation(server, memory) as site:
        assert await site.state() == (200, "")
        assert (await site.post(COPY))[1]["verdict"] == "duplicate"


def put_back(client: redis.Redis, copies: dict[Any, Any]) -> None:
    """Replace all keys at once: a running service writes meanwhile."""
    with client.pipeline(transaction=True) as pipe:
        pipe.flushall()
        for key, value in copies.items():
            pipe.restore(key, 0, value)
        pipe.execute()


@pytest.mark.services
async def test_deletion_a_first_start_and_another_process_are_no_incident(
    server: EmbeddedServer, client: redis.Redis, tmp_path: Path
) -> None:
    """Nor is a second replica without a memory; but one that starts on an emptied store learns of it."""
    async with installation(server, tmp_path / "memory") as site:
        assert await site.state() == (200, "")
        await site.fill(3)
        for i in range(3):
            assert (await site.session.delete(f"/v1/articles/n{i}")).status == 204
        async with installation(server, tmp_path / "other") as other:
            assert await other.state() == (200, "")
        assert await site.state() == (200, "")
        client.flushall()
        await site.until(200, "was emptied")
        async with installation(server, tmp_path / "new") as other:
            status, said = await other.state()
            assert status == 503 and "running processes know" in said
    async with installation(server, tmp_path / "memory") as site:
        assert (await site.state())[0] == 503
