"""The event stream as a browser reads it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from aggregator.app import Service, open_service
from aggregator.events import broadcast
from aggregator.events.detection.model import ChangeKind
from aggregator.http.app_keys import STREAM_LIMIT
from aggregator.http.handlers import feeds
from aggregator.settings import Settings
from tests.support.factories import commit_event, event
from tests.support.fake_service import Client, serving
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.integration

ReadMessage = Callable[[], Awaitable[dict[str, str]]]


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A service with the memory store whose broadcaster polls every 10 ms."""
    async with open_service(Settings(store_url="memory")) as opened:
        opened.events.broadcaster._poll_interval_s = 0.01
        yield opened


async def change_event(service: Service, kind: ChangeKind, size: int, **fields: Any) -> None:
    """Commit a new version of the event e1."""
    changed = replace(event("e1", "Bridge closed\nafter storm", ["a"]), size=size, **fields)
    await commit_event(service.events.repository, kind, changed, size)


@asynccontextmanager
async def stream(client: Client, query: str = "", **headers: str) -> AsyncIterator[ReadMessage]:
    """An open stream: a function that reads one message as a dict of its lines."""
    async with client.get(f"/v1/events/stream{query}", headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"

        async def read_message() -> dict[str, str]:
            async with asyncio.timeout(HANG_LIMIT_S):
                data = (await response.content.readuntil(b"\n\n")).decode()
            return dict(line.partition(": ")[::2] for line in data.strip().split("\n"))

        yield read_message


async def test_changes_are_sent_with_kind_and_position(client: Client, service: Service) -> None:
    """The first message has the position; a change has the event as in the list, on one line."""
    async with stream(client) as read_message:
        opening = await read_message()
        await change_event(service, "fired", 16)
        message = await read_message()

    assert opening.keys() == {"retry", "id"}
    assert message["event"] == "fired"
    listed = (await (await client.get("/v1/events")).json())["events"][0]
    assert json.loads(message["data"]) == listed


@pytest.mark.parametrize("source", ["header", "query"])
async def test_a_stream_resumes_after_a_position(client: Client, service: Service, source: str) -> None:
    """By the header that browsers send automatically, or by a query parameter."""
    async with stream(client) as read_message:
        await read_message()
        await change_event(service, "fired", 16)
        position = (await read_message())["id"]
    await change_event(service, "updated", 17)
    headers = {"Last-Event-ID": position} if source == "header" else {}
    query = f"?after={position}" if source == "query" else ""
    async with stream(client, query, **headers) as read_message:
        await read_message()

        assert json.loads((await read_message())["data"])["size"] == 17


async def test_an_unknown_position_is_answered_with_reset(client: Client) -> None:
    """The client must reload the list."""
    async with stream(client, **{"Last-Event-ID": "what?"}) as read_message:
        assert (await read_message())["event"] == "reset"


async def test_filtered_events_send_only_their_position(client: Client, service: Service) -> None:
    """The position advances without data."""
    async with stream(client, "?min_size=17&source=ONE.example&term=bridge") as read_message:
        await read_message()
        await change_event(service, "fired", 16)
        assert (await read_message()).keys() == {"id"}
        await change_event(service, "updated", 17)

        assert (await read_message())["event"] == "updated"


async def test_an_idle_stream_sends_heartbeats(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments, so that proxies and the server notice closed connections."""
    monkeypatch.setattr(feeds, "HEARTBEAT_S", 0.01)
    async with stream(client) as read_message:
        await read_message()
        assert "heartbeat" in str(await read_message())


async def test_a_stream_ends_with_its_key(
    client: Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A revoked key's stream ends at its next message or heartbeat; another key's stream continues."""
    monkeypatch.setattr(feeds, "HEARTBEAT_S", 0.05)
    (revoked, text), (_, other) = [
        await service.edge.api_keys.add(name, "reader") for name in ("one", "other")
    ]
    async with (
        stream(client, Authorization=f"Bearer {text}") as read_revoked,
        stream(client, Authorization=f"Bearer {other}") as read_other,
    ):
        assert (await read_revoked()).keys() == {"retry", "id"}
        assert await read_revoked() == {"": "heartbeat"}
        await service.edge.api_keys.revoke(revoked.id)
        async with asyncio.timeout(HANG_LIMIT_S):
            while await read_revoked() != {"": ""}:  # end of the stream
                pass
        await read_other()
        for _ in range(3):
            assert await read_other() == {"": "heartbeat"}


async def test_a_full_broadcaster_refuses_streams(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 with Retry-After; browsers reconnect automatically."""
    monkeypatch.setattr(broadcast, "MAX_SUBSCRIBERS", 1)
    async with stream(client) as read_message:
        await read_message()
        response = await client.get("/v1/events/stream")

        assert response.status == 503
        assert response.headers["Retry-After"] == "5"
        assert (await response.json(content_type=None))["code"] == "too_many_streams"


async def test_one_key_gets_half_of_the_slots(client: Client, service: Service) -> None:
    """Also for simultaneous requests: the slot is taken before the first await."""
    client.app[STREAM_LIMIT]._slots = 4
    (_, text), (_, other) = [await service.edge.api_keys.add(name, "reader") for name in ("greedy", "other")]
    ended: list[tuple[str, int]] = []

    async def listen(key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with client.get("/v1/events/stream", headers=headers) as response:
            if response.status == 200:
                opened.release()
                await response.read()
            ended.append((key, response.status))

    opened = asyncio.Semaphore(0)
    async with asyncio.timeout(HANG_LIMIT_S), asyncio.TaskGroup() as group:
        for key in (text, text, text, text, other):
            group.create_task(listen(key))
        for _ in range(3):
            await opened.acquire()
        while len(ended) < 2:  # noqa: ASYNC110 (no event to wait for)
            await asyncio.sleep(0)
        refused = list(ended)
        service.events.broadcaster.close()

    assert refused == [(text, 503)] * 2
    assert sorted(status for _, status in ended) == [200, 200, 200, 503, 503]
    async with asyncio.timeout(HANG_LIMIT_S):
        while client.app[STREAM_LIMIT].usage.total:  # noqa: ASYNC110 (released after the response)
            await asyncio.sleep(0)


async def test_a_shutdown_closes_open_streams(service: Service) -> None:
    """The response ends properly, without waiting for the client."""
    async with serving(service) as client, client.get("/v1/events/stream") as response:
        await response.content.readuntil(b"\n\n")
        async with asyncio.timeout(HANG_LIMIT_S):
            assert client.server.runner is not None
            await client.server.runner.shutdown()
            rest = await response.content.read()

    assert rest == b""


async def test_the_list_accepts_the_same_filter(client: Client, service: Service) -> None:
    """Term, language, size and source."""
    await change_event(service, "fired", 16, languages=("en",))
    counts = [
        len((await (await client.get(f"/v1/events?{query}")).json())["events"])
        for query in ("term=bridge&lang=en", "lang=zh", "min_size=17", "source=two.example")
    ]

    assert counts == [1, 0, 0, 1]
