"""The stream worker on a real store: nothing lost, nothing acknowledged too early."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing

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
    """A driver of an empty server."""
    async with aclosing(driver.Redis.from_url(valkey_url)) as opened:
        yield opened


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client, failing closed, of a service in memory."""
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


async def drained(worker: StreamWorker) -> int:
    """Settle all there is; how many."""
    await worker.ensure_group()
    total = 0
    while settled := await worker.process_batch():
        total += settled
    return total


async def verdicts(redis: driver.Redis) -> list[tuple[str, str]]:
    """(id, verdict) in the order written."""
    rows = [json.loads(fields[b"verdict"]) for _, fields in await redis.xrange("verdicts")]
    return [(row["id"], row["verdict"]) for row in rows]


async def test_every_entry_is_answered_or_buried(redis, client):
    """A verdict for each article, a reason for each entry that is none."""
    await put(
        redis, {"id": "a", "text": story(1)}, "{", {"id": "b", "text": edited(story(1), 2)}, "[]", {"id": "c"}
    )
    await redis.xadd("articles", {"other": "field"})
    worker = StreamWorker(redis, client, StreamNames())

    assert await drained(worker) == 6
    assert await verdicts(redis) == [("a", "new"), ("b", "duplicate")]
    reasons = [fields[b"reason"].decode() for _, fields in await redis.xrange("articles:dead")]
    assert [any(w in r for r in reasons) for w in ("not JSON", "not a JSON object", "text", "no field")] == [
        True
    ] * 4
    assert (
        worker.processed,
        worker.dead_lettered,
        (await redis.xpending("articles", "aggregator"))["pending"],
    ) == (
        2,
        4,
        0,
    )


async def test_what_a_dead_worker_took_is_done_by_the_next(redis, client):
    """The articles were even committed before it died: the same verdicts come out."""
    await put(redis, {"id": "a", "text": story(1)}, {"id": "b", "text": edited(story(1), 2)})
    dead = StreamWorker(redis, client, StreamNames(consumer="dead"))
    await dead.ensure_group()
    taken = await dead._read_new(None)
    await client.submit_many([json.loads(fields[b"article"]) for _, fields in taken])

    await drained(StreamWorker(redis, client, StreamNames(consumer="next"), idle_ms=0))

    assert await verdicts(redis) == [("a", "new"), ("b", "duplicate")]
    assert (await redis.xpending("articles", "aggregator"))["pending"] == 0


async def test_a_worker_that_comes_back_first_does_what_it_left(redis, client):
    """Its own pending entries need not become idle."""
    await put(redis, {"id": "a", "text": story(1)})
    first = StreamWorker(redis, client, StreamNames())
    await first.ensure_group()
    await first._read_new(None)

    assert await drained(StreamWorker(redis, client, StreamNames())) == 1
    assert await verdicts(redis) == [("a", "new")]


async def test_an_entry_that_nobody_settles_is_given_up(redis, free_port):
    """While the service is away entries stay pending; delivered too often they go aside, with the reason."""
    await put(redis, {"id": "a", "text": story(1)})
    async with Client(f"http://127.0.0.1:{free_port}", on_failure="closed", batch_deadline_s=0.05) as nobody:
        for _ in range(3):
            worker = StreamWorker(redis, nobody, StreamNames(), max_deliveries=2)
            await worker.ensure_group()
            try:
                await worker.process_batch()
            except Unavailable:
                assert await redis.xlen("articles:dead") == 0
        assert (await redis.xrange("articles:dead"))[0][1][b"reason"] == b"delivered more than 2 times"
        assert await verdicts(redis) == []


async def test_two_workers_share_the_work(redis, client):
    """Each entry is settled once, and of near-copies in different hands one is new."""
    await put(redis, *({"id": f"{i}-{k}", "text": edited(story(i), k)} for i in range(40) for k in range(4)))
    workers = [StreamWorker(redis, client, StreamNames(consumer=name)) for name in ("one", "two")]
    await workers[0].ensure_group()
    await asyncio.gather(*(drained(worker) for worker in workers))
    told = await verdicts(redis)

    assert len({id_ for id_, _ in told}) == len(told) == 160
    assert sum(verdict == "new" for _, verdict in told) == 40


async def test_it_stops_when_told(redis, client):
    """``run`` ends, with what it took settled."""
    await put(redis, {"id": "a", "text": story(1)})
    stop = asyncio.Event()
    worker = StreamWorker(redis, client, StreamNames())
    task = asyncio.create_task(worker.run(stop))
    assert await redis.xread({"verdicts": "0"}, block=30_000)
    stop.set()
    await task

    assert worker.processed == 1
