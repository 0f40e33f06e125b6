"""The stream of changed events as a browser reads it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestClient

from aggregator.app import Service, open_service
from aggregator.http.app_keys import STREAM_LIMIT
from aggregator.http.handlers import sse
from aggregator.settings import Settings
from tests.support.factories import commit_event, event
from tests.support.fake_service import serving

SOON_S = 5.0


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A service in memory whose stream reads often."""
    async with open_service(Settings(store_url="memory")) as real:
        real.change_broadcaster._poll_interval_s = 0.01
        yield real


async def happen(service: Service, kind: str, size: int, **more: object) -> None:
    """An event changes."""
    changed = replace(event("e1", "Bridge closed\nafter storm", ["a"]), size=size, **more)
    await commit_event(service.events, kind, changed, size)


@asynccontextmanager
async def stream(client: TestClient, query: str = "", **headers: str):
    """An open stream; reading it gives one block as a dict of its lines."""
    async with client.get(f"/v1/events/stream{query}", headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"

        async def block() -> dict[str, str]:
            async with asyncio.timeout(SOON_S):
                data = (await response.content.readuntil(b"\n\n")).decode()
            return dict(line.partition(": ")[::2] for line in data.strip().split("\n"))

        yield block


async def test_changes_arrive_with_their_kind_and_position(client, service):
    """The opening says where the stream is; each change is the event as the list shows it, on one line."""
    async with stream(client) as block:
        opening = await block()
        await happen(service, "fired", 16)
        told = await block()

    assert opening.keys() == {"retry", "id"}
    assert told["event"] == "fired"
    listed = (await (await client.get("/v1/events")).json())["events"][0]
    assert json.loads(told["data"]) == listed


@pytest.mark.parametrize("how", ["header", "query"])
async def test_it_resumes(client, service, how):
    """By the header that browsers send on their own, or by a parameter for the first time."""
    async with stream(client) as block:
        await block()
        await happen(service, "fired", 16)
        position = (await block())["id"]
    await happen(service, "updated", 17)
    headers = {"Last-Event-ID": position} if how == "header" else {}
    query = f"?after={position}" if how == "query" else ""
    async with stream(client, query, **headers) as block:
        await block()

        assert json.loads((await block())["data"])["size"] == 17


async def test_an_unknown_position_says_to_load_again(client):
    """The store was emptied, or the position is nonsense."""
    async with stream(client, **{"Last-Event-ID": "what?"}) as block:
        assert (await block())["event"] == "reset"


async def test_filters_pass_positions_only(client, service):
    """What is not wanted moves the position on and carries no data."""
    async with stream(client, "?min_size=17&source=ONE.example&term=bridge") as block:
        await block()
        await happen(service, "fired", 16)
        assert (await block()).keys() == {"id"}
        await happen(service, "updated", 17)

        assert (await block())["event"] == "updated"


async def test_heartbeats(client, monkeypatch):
    """A comment now and then, so that proxies and we notice who is gone."""
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.01)
    async with stream(client) as block:
        await block()
        assert "heartbeat" in str(await block())


async def test_a_stream_ends_with_its_key(client, service, monkeypatch):
    """Revoked: at its next word, be it only that all is well; another key's stream goes on."""
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.05)
    (one, text), (_, other) = [await service.api_keys.add(name, "reader") for name in ("one", "other")]
    async with (
        stream(client, Authorization=f"Bearer {text}") as leaving,
        stream(client, Authorization=f"Bearer {other}") as staying,
    ):
        assert (await leaving()).keys() == {"retry", "id"}
        assert await leaving() == {"": "heartbeat"}
        await service.api_keys.revoke(one.id)
        async with asyncio.timeout(SOON_S):
            while await leaving() != {"": ""}:  # what reading gives at the end
                pass
        await staying()
        for _ in range(3):
            assert await staying() == {"": "heartbeat"}


async def test_one_too_many_is_refused(client, service):
    """503 with Retry-After; browsers come back by themselves."""
    service.change_broadcaster._max_subscribers = 1
    async with stream(client) as block:
        await block()
        response = await client.get("/v1/events/stream")

        assert response.status == 503
        assert response.headers["Retry-After"] == "5"
        assert (await response.json(content_type=None))["code"] == "too_many_streams"


async def test_one_key_does_not_take_all_places(client, service):
    """Half of them, also of those who come at the same moment: the places are taken before anything is waited for."""
    client.app[STREAM_LIMIT]._slots = 4
    (_, text), (_, other) = [await service.api_keys.add(name, "reader") for name in ("greedy", "other")]
    ended = []

    async def listen(key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with client.get("/v1/events/stream", headers=headers) as response:
            if response.status == 200:
                opened.release()
                await response.read()
            ended.append((key, response.status))

    opened = asyncio.Semaphore(0)
    async with asyncio.timeout(SOON_S), asyncio.TaskGroup() as group:
        for key in (text, text, text, text, other):
            group.create_task(listen(key))
        for _ in range(3):
            await opened.acquire()
        while len(ended) < 2:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0)
        refused = list(ended)
        service.change_broadcaster.close()

    assert refused == [(text, 503)] * 2
    assert sorted(status for _, status in ended) == [200, 200, 200, 503, 503]
    async with asyncio.timeout(SOON_S):
        while client.app[STREAM_LIMIT]._usage.total:  # noqa: ASYNC110  callers hear of the end before it is counted
            await asyncio.sleep(0)


async def test_a_shutdown_does_not_wait_for_readers(service):
    """Open streams end in order as soon as the server goes down."""
    async with serving(service) as client, client.get("/v1/events/stream") as response:
        await response.content.readuntil(b"\n\n")
        async with asyncio.timeout(SOON_S):
            await client.server.runner.shutdown()
            rest = await response.content.read()

    assert rest == b""


async def test_the_list_takes_the_same_filter(client, service):
    """A watch is a query of the list."""
    await happen(service, "fired", 16, languages=("en",))
    counts = [
        len((await (await client.get(f"/v1/events?{query}")).json())["events"])
        for query in ("term=bridge&lang=en", "lang=zh", "min_size=17", "source=two.example")
    ]

    assert counts == [1, 0, 0, 1]
