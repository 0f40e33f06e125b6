"""The stream worker on a Valkey server: no entry is lost or acknowledged too early."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from redis import asyncio as driver

from aggregator.app import open_service
from aggregator.clients import Client, Unavailable
from aggregator.clients.stream_worker import StreamNames, StreamWorker
from aggregator.http.app import make_app
from aggregator.settings import Settings
from tests.support.factories import edited, story


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator[driver.Redis]:
    """A connection to an empty server."""
    async with aclosing(driver.Redis.from_url(valkey_url)) as opened:
        yield opened


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client that fails closed, of a service with a memory store."""
    async with (
        open_service(Settings(store_url="memory")) as service,
        TestServer(make_app(service)) as server,
        Client(str(server.make_url("")), on_failure="closed", deadline_s=30) as opened,
    ):
        yield opened


async def put(redis: driver.Redis, *articles: dict[str, str] | str) -> None:
    """Append entries to the input stream."""
    for article in articles:
        raw = article if isinstance(article, str) else json.dumps(article)
        await redis.xadd("articles", {"article": raw})


async def drain(worker: StreamWorker) -> int:
    """Process all entries; their number."""
    await worker.ensure_group()
    total = 0
    while processed := await worker.process_batch():
        total += processed
    return total


async def stream_fields(redis: driver.Redis, stream: str) -> list[dict[bytes, bytes]]:
    """The fields of all entries of a stream."""
    entries: Any = await redis.xrange(stream)
    return [fields for _, fields in entries]


async def pending_count(redis: driver.Redis) -> int:
    """Number of entries that were read and not acknowledged."""
    summary: Any = await redis.xpending("articles", "aggregator")
    return int(summary["pending"])


async def verdicts(redis: driver.Redis) -> list[tuple[str, str]]:
    """(id, verdict) in the order written."""
    rows = [json.loads(fields[b"verdict"]) for fields in await stream_fields(redis, "verdicts")]
    return [(row["id"], row["verdict"]) for row in rows]


async def test_every_entry_gets_a_verdict_or_becomes_a_dead_letter(
    redis: driver.Redis, client: Client
) -> None:
    """A verdict for each article, a reason for each invalid entry."""
    await put(
        redis, {"id": "a", "text": story(1)}, "{", {"id": "b", "text": edited(story(1), 2)}, "[]", {"id": "c"}
    )
    await redis.xadd("articles", {"other": "field"})
    worker = StreamWorker(redis, client, StreamNames())

    assert await drain(worker) == 6
    assert await verdicts(redis) == [("a", "new"), ("b", "duplicate")]
    reasons = [fields[b"reason"].decode() for fields in await stream_fields(redis, "articles:dead")]
    for expected in ("not JSON", "not a JSON object", "text", "no field"):
        assert any(expected in reason for reason in reasons), expected
    assert (worker.processed, worker.dead_lettered, await pending_count(redis)) == (2, 4, 0)


async def test_the_entries_of_a_dead_worker_are_claimed(redis: driver.Redis, client: Client) -> None:
    """Their articles were committed before it died; the verdicts are the same."""
    await put(redis, {"id": "a", "text": story(1)}, {"id": "b", "text": edited(story(1), 2)})
    dead = StreamWorker(redis, client, StreamNames(consumer="dead"))
    await dead.ensure_group()
    entries = await dead._read_new(None)
    await client.submit_many([json.loads(fields[b"article"]) for _, fields in entries])

    await drain(StreamWorker(redis, client, StreamNames(consumer="next"), idle_ms=0))

    assert await verdicts(redis) == [("a", "new"), ("b", "duplicate")]
    assert await pending_count(redis) == 0


async def test_a_restarted_worker_first_processes_its_own_entries(
    redis: driver.Redis, client: Client
) -> None:
    """It does not wait until they are idle."""
    await put(redis, {"id": "a", "text": story(1)})
    first = StreamWorker(redis, client, StreamNames())
    await first.ensure_group()
    await first._read_new(None)

    assert await drain(StreamWorker(redis, client, StreamNames())) == 1
    assert await verdicts(redis) == [("a", "new")]


async def test_an_entry_delivered_too_often_becomes_a_dead_letter(
    redis: driver.Redis, free_port: int
) -> None:
    """While the service is unavailable, entries stay pending until the limit of deliveries."""
    await put(redis, {"id": "a", "text": story(1)})
    async with Client(
        f"http://127.0.0.1:{free_port}", on_failure="closed", batch_deadline_s=0.05
    ) as unreachable:
        for _ in range(3):
            worker = StreamWorker(redis, unreachable, StreamNames(), max_deliveries=2)
            await worker.ensure_group()
            try:
                await worker.process_batch()
            except Unavailable:
                assert await redis.xlen("articles:dead") == 0
        dead_letters = await stream_fields(redis, "articles:dead")
        assert dead_letters[0][b"reason"] == b"delivered more than 2 times"
        assert await verdicts(redis) == []


async def test_two_workers_share_the_work(redis: driver.Redis, client: Client) -> None:
    """Each entry is processed once; of near-duplicates in different workers one is new."""
    await put(redis, *({"id": f"{i}-{k}", "text": edited(story(i), k)} for i in range(40) for k in range(4)))
    workers = [StreamWorker(redis, client, StreamNames(consumer=name)) for name in ("one", "two")]
    await workers[0].ensure_group()
    await asyncio.gather(*(drain(worker) for worker in workers))
    results = await verdicts(redis)

    assert len({id_ for id_, _ in results}) == len(results) == 160
    assert sum(verdict == "new" for _, verdict in results) == 40


async def test_run_ends_when_stop_is_set(redis: driver.Redis, client: Client) -> None:
    """The entries that it read are processed."""
    await put(redis, {"id": "a", "text": story(1)})
    stop = asyncio.Event()
    worker = StreamWorker(redis, client, StreamNames())
    task = asyncio.create_task(worker.run(stop))
    assert await redis.xread({"verdicts": "0"}, block=30_000)
    stop.set()
    await task

    assert worker.processed == 1
