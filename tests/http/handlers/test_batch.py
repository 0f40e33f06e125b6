"""NDJSON in, NDJSON out: order, errors in their line, streaming, limits."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from aggregator.errors import StoreUnavailable
from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving


def line(id_: str, text: str = "") -> bytes:
    """One input line."""
    return (
        json.dumps({"id": id_, "text": text or f"Story number {id_} about its own matter."}).encode() + b"\n"
    )


async def answers(response) -> list[dict]:
    """The output lines."""
    return [json.loads(row) for row in (await response.read()).splitlines()]


async def test_one_answer_per_line_in_order(client):
    """200 lines give 200 answers in their order, and a copy is a duplicate of the earlier line."""
    body = b"".join(line(f"a{n}") for n in range(199)) + line("copy", "Story number a3 about its own matter.")
    response = await client.post("/v1/articles/batch", data=body)
    rows = await answers(response)

    assert response.headers["Content-Type"] == "application/x-ndjson"
    assert [row["id"] for row in rows] == [f"a{n}" for n in range(199)] + ["copy"]
    assert rows[-1]["duplicate_of"]["id"] == "a3"


async def test_bad_lines_answer_with_their_error(client, service):
    """Each bad line names its number and what is wrong; the others are stored."""
    body = line("a") + b"{oops\n" + b"\n  \r\n" + b'{"id": 7}\n' + b'{"id": "x"}\n' + line("b").rstrip()
    rows = await answers(await client.post("/v1/articles/batch", data=body))

    assert [row.get("id") or row["line"] for row in rows] == ["a", 2, 5, 6, "b"]
    assert [row["error"]["field"] for row in rows if "error" in row] == ["body", "id", "text"]
    assert {row["error"]["status"] for row in rows if "error" in row} == {400}
    assert set(service.articles) == {"a", "b"}


async def test_byte_order_mark_and_carriage_returns(client):
    """Files from other systems are read as they are."""
    body = b"\xef\xbb\xbf" + line("a").replace(b"\n", b"\r\n") + line("b")

    assert [row["id"] for row in await answers(await client.post("/v1/articles/batch", data=body))] == [
        "a",
        "b",
    ]


async def test_gzip_batch(client):
    """The whole batch may be compressed."""
    data = gzip.compress(b"".join(line(f"a{n}") for n in range(100)))
    response = await client.post("/v1/articles/batch", data=data, headers={"Content-Encoding": "gzip"})

    assert len(await answers(response)) == 100


async def test_damaged_gzip_ends_with_an_error_line(client):
    """What came before the damage is answered; the damage has a line of its own."""
    data = gzip.compress(b"".join(line(f"a{n}") for n in range(10)))
    response = await client.post(
        "/v1/articles/batch", data=data[:30] + b"\xff" * 40, headers={"Content-Encoding": "gzip"}
    )
    rows = await answers(response)

    assert "damaged" in rows[-1]["error"]["detail"]


async def test_dry_run_batch(client, service):
    """Nothing is stored."""
    rows = await answers(await client.post("/v1/articles/batch?dry_run=1", data=line("a")))

    assert rows[0]["verdict"] == "new"
    assert service.articles == {}


async def test_empty_batch(client):
    """No lines, no answers."""
    response = await client.post("/v1/articles/batch", data=b"")

    assert (response.status, await response.read()) == (200, b"")


@pytest.mark.parametrize(
    "failure", [StoreUnavailable("The store does not answer."), ZeroDivisionError("hidden")]
)
async def test_failures_become_lines(client, service, failure):
    """A store that is away, or a bug, answers every line: the caller knows what to send again."""
    service.failure = failure
    rows = await answers(await client.post("/v1/articles/batch", data=line("a") + b"{\n" + line("b")))

    assert [row["line"] for row in rows] == [1, 2, 3]
    assert rows[0]["error"]["status"] in (500, 503)
    assert rows[1]["error"]["status"] == 400
    assert "hidden" not in json.dumps(rows)


async def test_long_lines_and_too_many_lines():
    """A line above the cap costs only itself; lines above their number end the batch with one sentence."""
    service = FakeService(Settings(store_url="memory", max_body_bytes=2048, max_batch_lines=4))
    async with serving(service) as client:
        body = line("a") + line("long", "x" * 500_000) + line("b") + line("c") + line("d") + line("e")
        rows = await answers(await client.post("/v1/articles/batch", data=body))

    assert [row.get("id") or row["line"] for row in rows] == ["a", 2, "b", "c", 5]
    assert [row["error"]["code"] for row in rows if "error" in row] == ["too_large", "too_large"]
    assert set(service.articles) == {"a", "b", "c"}


async def test_lines_at_the_cap():
    """A line of exactly the cap is taken, one byte more is not, with either line end."""
    service = FakeService(Settings(store_url="memory", max_body_bytes=1024))
    fits = line("a", "y" * (1024 - len(line("a", "y")) + 2)).rstrip()
    assert len(fits) == 1024
    async with serving(service) as client:
        body = fits + b"\r\n" + fits + b" \n" + fits.replace(b"y", b"yy", 1) + b"\n" + fits
        rows = await answers(await client.post("/v1/articles/batch", data=body))

    assert ["error" in row for row in rows] == [False, False, True, False]


async def test_answers_flow_while_lines_still_arrive(client):
    """A crawler may keep one batch open: each line is answered before the next one is sent."""
    ready: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def body():
        while (data := await ready.get()) is not None:
            yield data

    ready.put_nowait(line("a"))
    async with client.post("/v1/articles/batch", data=body()) as response:
        assert json.loads(await response.content.readline())["id"] == "a"
        ready.put_nowait(line("b"))
        assert json.loads(await response.content.readline())["id"] == "b"
        ready.put_nowait(None)
        assert await response.content.read() == b""


async def test_client_that_sends_all_before_it_reads(service):
    """A caller that reads no answer until its last byte is sent must not stall both sides."""
    async with serving(service) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port, limit=2**16)
        rows = [line(f"a{n}", "word " * 60 + str(n)) for n in range(9000)]
        size = sum(map(len, rows))
        writer.write(
            b"POST /v1/articles/batch HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            % size
        )
        for start in range(0, len(rows), 100):
            writer.write(b"".join(rows[start : start + 100]))
            await writer.drain()
        answer = await reader.read(-1)
        writer.close()
        await writer.wait_closed()

    assert answer.count(b'"verdict":"new"') == 9000


async def test_a_stalled_batch_times_out() -> None:
    """After too long a pause the last line reports it."""
    end = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield line("a")
        await end.wait()

    service = FakeService(Settings(store_url="memory", body_timeout_seconds=0.5))
    async with serving(service) as client, client.post("/v1/articles/batch", data=body()) as response:
        rows = [json.loads(await response.content.readline()) for _ in range(2)]
        end.set()

    assert rows[0]["id"] == "a"
    assert (rows[1]["line"], rows[1]["error"]["code"]) == (2, "slow_body")


async def test_caller_who_hangs_up(client, service):
    """A batch whose caller leaves stops; the service goes on."""
    started = asyncio.Event()

    async def body():
        yield line("a")
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(client.post("/v1/articles/batch", data=body()))
    await started.wait()
    task.cancel()
    with pytest.raises((asyncio.CancelledError, aiohttp.ClientError)):
        await task

    assert (await client.get("/healthz")).status == 200


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd", "x"])
async def test_other_encodings_are_refused(client, encoding):
    """Only identity and gzip, for single articles and batches alike."""
    for path in ("/v1/articles", "/v1/articles/batch"):
        response = await client.post(
            path, data=b"xx", headers={"Content-Encoding": encoding}, skip_auto_headers=["Content-Encoding"]
        )
        body = await response.json(content_type="application/problem+json")
        assert (response.status, body["code"]) == (415, "unsupported_encoding"), path


async def test_gzip_bomb_costs_no_more_than_the_limit(client):
    """200 MB of nothing in 200 kB: refused as soon as the limit is passed, in a batch as one line."""
    data = gzip.compress(bytes(200_000_000), 9)
    headers = {"Content-Encoding": "gzip"}
    single = await client.post("/v1/articles", data=data, headers=headers)
    rows = await answers(await client.post("/v1/articles/batch", data=data, headers=headers))

    assert single.status == 413
    assert [row["error"]["code"] for row in rows] == ["too_large"]


async def test_blank_lines_do_not_go_on_for_ever(client):
    """Thirty kilobytes can hold thirty million of them: reading ends where other lines would be too many."""
    bomb = gzip.compress(b"\n" * 30_000_000)
    async with client.post(
        "/v1/articles/batch",
        data=bomb,
        headers={"Content-Encoding": "gzip"},
        timeout=aiohttp.ClientTimeout(5),
    ) as response:
        (row,) = (await response.text()).splitlines()

    assert json.loads(row)["line"] == 10_001
    assert json.loads(row)["error"]["code"] == "too_large"


async def test_gzip_members_and_plain_bodies(client):
    """Members may follow one another; a body that says gzip and is not is taken as it is."""
    headers = {"Content-Encoding": "gzip"}
    data = gzip.compress(line("a")) + gzip.compress(line("b"))
    for body, expected in [(data, ["a", "b"]), (line("c"), ["c"])]:
        rows = await answers(await client.post("/v1/articles/batch", data=body, headers=headers))
        assert [row["id"] for row in rows] == expected
