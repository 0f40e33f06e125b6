"""The stream worker on a Valkey server: no entry is lost or acknowledged too early."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from redis import asyncio as driver

from aggregator.app import open_service
from aggregator.http.server import make_app
from aggregator.settings import Settings
from aggregator_client import Client
from aggregator_client.errors import ConfigurationError
from aggregator_client.stream_group import StreamGroup, StreamNames
from aggregator_client.stream_worker import MAX_FAILURES, StreamWorker
from tests.cli.helpers import run
from tests.client import misbehaving
from tests.client.test_connection import VERDICT
from tests.support.factories import edited, story
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.stores import direct_async_client


@pytest.fixture
async def redis(valkey_url: str) -> AsyncIterator[driver.Redis]:
    """A connection to an empty server."""
    async with aclosing(direct_async_client(valkey_url)) as opened:
        yield opened


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A client that fails closed, of a service with a memory store."""
    async with (
        open_service(Settings(store_url="memory", request_timeout_seconds=HANG_LIMIT_S)) as service,
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
    await worker._group.ensure()
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


def article(**members: object) -> dict[str, bytes | str]:
    """The fields of an entry."""
    return {"article": json.dumps({"id": "x", **members})}


POISON: dict[str, Any] = {  # fields of an entry
    "no article": {"other": "field"},
    "4,100 fields": {f"f{i}": "x" for i in range(4_100)},
    "9,000 fields and an article": {**article(text=story(2)), **{f"f{i}": "x" for i in range(9_000)}},
    "a field of 2 MB": {"f": "x" * 2_000_000},
    "a name of 2 MB": {"n" * 2_000_000: "x"},
    "own fields of dead letters": {"reason": "mine", "entry": "0-0", "fields_left_out": "9"},
    "names that are no text": {b"\xff\xfe": b"\x00"},
    "empty": {"article": ""},
    "spaces": {"article": " \n\t"},
    "bytes": {"article": bytes(range(256))},
    "UTF-16": {"article": '{"text": "a"}'.encode("utf-16")},
    "BOM": {"article": b'\xef\xbb\xbf{"text": "a"}'},
    "gzip": {"article": b"\x1f\x8b\x08\x00\x00"},
    "half a document": {"article": '{"id": "x", "text": "'},
    "two documents": {"article": '{"id": "x"}{"id": "y"}'},
    "array": {"article": '[{"id": "x"}]'},
    "null": {"article": "null"},
    "text": {"article": '"text"'},
    "number": {"article": "1e400"},
    "NaN": {"article": '{"id": "x", "text": NaN}'},
    "4,400 digits": {"article": '{"id": ' + "9" * 4_400 + "}"},
    "400 digits": {"article": '{"id": ' + "9" * 400 + "}"},
    "depth 900": {"article": '{"text": ' + "[" * 900 + "]" * 900 + "}"},
    "depth 200,000": {"article": "[" * 200_000},
    "objects in objects": {"article": '{"text": ' + '{"a": ' * 450 + "1" + "}" * 450 + "}"},
    "half a surrogate pair as name": {"article": '{"id": "x", "\\ud800": 1}'},
    "half a pair in a list": {"article": '{"id": "x", "text": ["\\ud83d"]}'},
    "half a pair as profile": article(text=story(2), policy="\ud800"),
    "unknown names, 20,000": {"article": json.dumps({f"name{i}": i for i in range(20_000)})},
    "an unknown name of 1 MB": article(**{"n" * 1_000_000: 1}),
    "id of 1 MB": article(id="i" * 1_000_000, text=story(2)),
    "id with NUL": article(id="a\0b", text=story(2)),
    "id with line ends": article(id="a\r\nb", text=story(2)),
    "id is a list": article(id=["x"], text=story(2)),
    "text is true": article(text=True),
    "text of 4 MB": article(text="word " * 800_000),
    "HTML without an end": article(html="<div>" * 50_000),
    "date in the year 99999": article(text=story(2), published_at="99999-01-01T00:00:00Z"),
    "date is an object": article(text=story(2), published_at={"year": 2026}),
    "url of another scheme": article(text=story(2), url="javascript:alert(1)"),
    "unknown language": article(text=story(2), lang="x" * 5_000),
    "unknown profile": article(text=story(2), policy="none\n"),
}


@pytest.mark.filterwarnings("ignore:Sending a large body")
async def test_no_poison_stops_the_worker(
    redis: driver.Redis, client: Client, valkey_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """42 kinds, each before a good entry: a verdict or a dead letter with one short reason for every one.

    The command lists all letters; what it puts back becomes a dead letter again.
    """
    for number, fields in enumerate(POISON.values()):
        await redis.xadd("articles", fields)
        await put(redis, {"id": f"good-{number}", "text": story(number)})
    worker = StreamWorker(redis, client, StreamNames())
    await worker.drain()

    good = {id_ for id_, _ in await verdicts(redis)}
    letters = await stream_fields(redis, "articles:dead")
    assert good >= {f"good-{number}" for number in range(len(POISON))}
    assert (worker.processed + worker.dead_lettered, await pending_count(redis)) == (2 * len(POISON), 0)
    assert len(letters) == worker.dead_lettered >= 32
    assert all(0 < len(fields[b"reason"]) <= 3_000 and len(fields) < 60 for fields in letters)
    assert {fields.get(b"fields_left_out") for fields in letters} == {None, b"4050", b"9"}

    options = ("work", "--redis", valkey_url, "--dead-letters")
    assert await asyncio.to_thread(run, *options, "list") == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["entry"].encode() for row in listed] == [fields[b"entry"] for fields in letters]
    with_article = sum("article" in row for row in listed)
    assert await asyncio.to_thread(run, *options, "replay") == 0
    assert capsys.readouterr().out.startswith(f"{with_article} dead letters put back, ")
    again = StreamWorker(redis, client, StreamNames())
    await again.drain()
    assert (again.processed, again.dead_lettered) == (0, with_article)
    assert await redis.xlen("articles:dead") == len(letters)


async def test_a_replayed_entry_is_decided_once_its_cause_is_gone(
    redis: driver.Redis, client: Client
) -> None:
    """It gets its verdict, and is a dead letter no more; a second command finds nothing."""
    await client.submit({"id": "gone", "text": story(1)})
    await redis.xadd("articles:dead", {"article": json.dumps({"id": "a", "text": story(3)}), "reason": "r"})
    group = StreamGroup(redis, StreamNames(), 0, 100)
    (letter,) = [letter async for letter in group.dead_letters()]

    assert [await group.replay(letter), await group.replay(letter)] == [True, False]
    await StreamWorker(redis, client, StreamNames()).drain()
    assert (await verdicts(redis), await redis.xlen("articles:dead")) == ([("a", "new")], 0)


async def test_what_was_taken_down_is_dead_lettered_without_its_text(
    redis: driver.Redis, client: Client
) -> None:
    """Id of the entry and reason only."""
    gone = {"id": "gone", "text": story(1)}
    await client.submit(gone)
    await client.delete("gone", take_down=True)
    await put(redis, gone)

    await drain(StreamWorker(redis, client, StreamNames()))

    (fields,) = await stream_fields(redis, "articles:dead")
    assert fields.keys() == {b"entry", b"reason"} and b"taken down" in fields[b"reason"]


async def test_the_entries_of_a_dead_worker_are_claimed(redis: driver.Redis, client: Client) -> None:
    """Their articles were committed before it died; the verdicts are the same."""
    await put(redis, {"id": "a", "text": story(1)}, {"id": "b", "text": edited(story(1), 2)})
    dead = StreamWorker(redis, client, StreamNames(consumer="dead"))
    await dead._group.ensure()
    entries = await dead._group.read_new(None)
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
    await first._group.ensure()
    await first._group.read_new(None)

    assert await drain(StreamWorker(redis, client, StreamNames())) == 1
    assert await verdicts(redis) == [("a", "new")]


class Outage:
    """A service that is unavailable for some requests, then gives verdicts; the id ``poison`` kills it."""

    def __init__(self, failures: int = 0, poison: str = "") -> None:
        self.failures, self.poison = failures, poison
        self.requests = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer /readyz and batches."""
        self.requests += 1
        if self.failures:
            self.failures -= 1
            return await misbehaving.problem(503, "store_unavailable")(request)
        if request.path == "/readyz":
            return web.json_response({})
        lines = [json.loads(line) for line in (await request.read()).splitlines()]
        if any(line["id"] == self.poison for line in lines):
            return await misbehaving.disconnect(request)
        answers = [json.dumps({**VERDICT, "id": line["id"]}) + "\n" for line in lines]
        return web.Response(body="".join(answers))


@pytest.mark.usefixtures("virtual_time")
async def test_an_outage_of_minutes_loses_no_entry(
    redis: driver.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    """600 failed requests (one a second: ten minutes): no dead letter, two log lines, one delivery each."""
    await put(redis, *({"id": str(number), "text": "t"} for number in range(10)))
    outage = Outage(failures=600)
    async with (
        misbehaving.serving(outage.handle) as url,
        Client(url, on_failure="closed", deadline_s=30, batch_deadline_s=30) as client,
    ):
        worker = StreamWorker(redis, client, StreamNames(), retry_delay_s=0)
        await worker.drain()

    assert (worker.processed, worker.dead_lettered, await pending_count(redis)) == (10, 0, 0)
    assert len(await verdicts(redis)) == 10
    lines = [record.getMessage() for record in caplog.records if record.name.endswith("stream_worker")]
    assert len(lines) == 2
    assert lines[0].startswith("waiting for the service (") and lines[1].startswith("resumed after ")


@pytest.mark.usefixtures("virtual_time")
async def test_only_the_entry_at_which_the_service_fails_becomes_a_dead_letter(redis: driver.Redis) -> None:
    """The other entries of its batch get their verdict."""
    await put(redis, *({"id": str(number), "text": "t"} for number in range(10)))
    async with (
        misbehaving.serving(Outage(poison="3").handle) as url,
        Client(url, on_failure="closed", deadline_s=30, batch_deadline_s=30) as client,
    ):
        worker = StreamWorker(redis, client, StreamNames(), retry_delay_s=0)
        await worker.drain()
        dead_letters = await stream_fields(redis, "articles:dead")

    assert (worker.processed, worker.dead_lettered, await pending_count(redis)) == (9, 1, 0)
    reason = dead_letters[0][b"reason"].decode()
    assert reason.startswith(
        f"The service failed {MAX_FAILURES} times at this article alone; the last error: "
    )
    assert [id_ for id_, _ in await verdicts(redis)] == [*"012", *"456789"]


@pytest.mark.parametrize(
    ("fault", "repair"),
    [
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
    ],
    ids=["read-only", "out of memory"],
)
async def test_a_failover_of_redis_is_waited_for(
    fault: tuple[str, ...],
    repair: tuple[str, ...],
    redis: driver.Redis,
    client: Client,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """READONLY and OOM are errors of the moment: the worker resumes and loses nothing."""
    await put(redis, {"id": "a", "text": story(1)})
    worker = StreamWorker(redis, client, StreamNames(), retry_delay_s=0.01)
    await worker._group.ensure()
    stop = asyncio.Event()
    server: Any = redis
    await server.execute_command(*fault)
    try:
        task = asyncio.create_task(worker.run(stop))
        async with asyncio.timeout(HANG_LIMIT_S):
            while not any("waiting for Redis" in record.getMessage() for record in caplog.records):
                await redis.ping()
    finally:
        await server.execute_command(*repair)
    assert await redis.xread({"verdicts": "0"}, block=30_000)
    stop.set()
    await task

    assert (worker.processed, worker.dead_lettered, await pending_count(redis)) == (1, 0, 0)
    assert await verdicts(redis) == [("a", "new")]


async def test_a_verdict_that_cannot_be_stored_is_not_acknowledged(
    redis: driver.Redis, client: Client
) -> None:
    """The output key is of another type: the entry stays pending, and the worker ends with the reason."""
    await put(redis, {"id": "a", "text": story(1)})
    await redis.set("verdicts", "text")
    worker = StreamWorker(redis, client, StreamNames())
    with pytest.raises(ConfigurationError, match="WRONGTYPE"):
        await worker.drain()
    assert await pending_count(redis) == 1

    await redis.delete("verdicts")
    await StreamWorker(redis, client, StreamNames()).drain()
    assert await verdicts(redis) == [("a", "new")]


async def test_trimming_keeps_every_unprocessed_entry(redis: driver.Redis, client: Client) -> None:
    """The processed entries of a long stream go; those that another group has not read stay."""
    await put(redis, *({"id": str(number), "text": story(number)} for number in range(400)))
    await redis.xgroup_create("articles", "other", id="0")
    worker = StreamWorker(redis, client, StreamNames(), maxlen=10, trim_source=True)
    await worker.drain()
    assert await redis.xlen("articles") == 400

    unread = 250
    await redis.xreadgroup("other", "reader", {"articles": ">"}, count=400 - unread)
    other: Any = await redis.xpending_range("articles", "other", min="-", max="+", count=400)
    await redis.xack("articles", "other", *(entry["message_id"] for entry in other))
    await worker._group.trim()
    assert unread <= await redis.xlen("articles") < 400
    assert len(await redis.xreadgroup("other", "reader", {"articles": ">"}, count=400)) == 1
    assert await redis.xlen("verdicts") < 400


async def test_two_workers_share_the_work(redis: driver.Redis, client: Client) -> None:
    """Each entry is processed once; of near-duplicates in different workers one is new."""
    await put(redis, *({"id": f"{i}-{k}", "text": edited(story(i), k)} for i in range(40) for k in range(4)))
    workers = [StreamWorker(redis, client, StreamNames(consumer=name)) for name in ("one", "two")]
    await workers[0]._group.ensure()
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


async def test_an_entry_names_its_policy_profile(redis: driver.Redis, client: Client) -> None:
    """One that the service does not know becomes a dead letter, with the known names."""
    await put(
        redis,
        {"id": "a", "text": story(1), "policy": "default"},
        {"id": "b", "text": story(1), "policy": "wire"},
    )

    assert await drain(StreamWorker(redis, client, StreamNames())) == 2
    assert await verdicts(redis) == [("a", "new")]
    (dead,) = await stream_fields(redis, "articles:dead")
    assert dead[b"reason"] == b"policy: unknown profile 'wire'; known: default."
