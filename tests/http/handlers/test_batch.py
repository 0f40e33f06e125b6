"""Batches as JSON lines: order, errors per line, streaming, limits."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from aggregator.errors import StoreUnavailable
from aggregator.settings import Settings
from tests.support.fake_service import Client, FakeService, serving

pytestmark = pytest.mark.integration


def line(id_: str, text: str = "") -> bytes:
    """One input line."""
    return (
        json.dumps({"id": id_, "text": text or f"Story number {id_} about its own subject."}).encode() + b"\n"
    )


async def answers(response: aiohttp.ClientResponse) -> list[dict[str, Any]]:
    """The output lines."""
    return [json.loads(row) for row in (await response.read()).splitlines()]


async def test_one_answer_per_line_in_order(client: Client) -> None:
    """200 lines give 200 answers in order; a copy of an earlier line is a duplicate."""
    body = b"".join(line(f"a{n}") for n in range(199)) + line(
        "copy", "Story number a3 about its own subject."
    )
    response = await client.post("/v1/articles/batch", data=body)
    rows = await answers(response)

    assert response.headers["Content-Type"] == "application/x-ndjson"
    assert [row["id"] for row in rows] == [f"a{n}" for n in range(199)] + ["copy"]
    assert rows[-1]["duplicate_of"]["id"] == "a3"


async def test_invalid_lines_are_answered_with_their_error(client: Client, service: FakeService) -> None:
    """Each error names its line number and field; the other lines are stored."""
    body = line("a") + b"{oops\n" + b"\n  \r\n" + b'{"id": 7}\n' + b'{"id": "x"}\n' + line("b").rstrip()
    rows = await answers(await client.post("/v1/articles/batch", data=body))

    assert [row.get("id") or row["line"] for row in rows] == ["a", 2, 5, 6, "b"]
    assert [row["error"]["field"] for row in rows if "error" in row] == ["body", "id", "text"]
    assert {row["error"]["status"] for row in rows if "error" in row} == {400}
    assert set(service.stored) == {"a", "b"}


async def test_byte_order_mark_and_carriage_returns_are_ignored(client: Client) -> None:
    """Files written on other systems."""
    body = b"\xef\xbb\xbf" + line("a").replace(b"\n", b"\r\n") + line("b")

    assert [row["id"] for row in await answers(await client.post("/v1/articles/batch", data=body))] == [
        "a",
        "b",
    ]


async def test_a_gzip_batch_is_decompressed(client: Client) -> None:
    """Content-Encoding gzip for the whole batch."""
    data = gzip.compress(b"".join(line(f"a{n}") for n in range(100)))
    response = await client.post("/v1/articles/batch", data=data, headers={"Content-Encoding": "gzip"})

    assert len(await answers(response)) == 100


async def test_damaged_gzip_ends_with_an_error_line(client: Client) -> None:
    """Lines before the damage are answered; the last line reports it."""
    data = gzip.compress(b"".join(line(f"a{n}") for n in range(10)))
    response = await client.post(
        "/v1/articles/batch", data=data[:30] + b"\xff" * 40, headers={"Content-Encoding": "gzip"}
    )
    rows = await answers(response)

    assert "damaged" in rows[-1]["error"]["detail"]


async def test_a_dry_run_stores_nothing(client: Client, service: FakeService) -> None:
    """Every line gets its verdict."""
    rows = await answers(await client.post("/v1/articles/batch?dry_run=1", data=line("a")))

    assert rows[0]["verdict"] == "new"
    assert service.stored == {}


@pytest.mark.parametrize("query", ["", "?backfill=true"])
async def test_a_backfill_is_declared_for_all_articles(
    client: Client, service: FakeService, query: str
) -> None:
    """Single articles and batches."""
    await client.post("/v1/articles" + query, json={"text": "one"})
    await answers(await client.post("/v1/articles/batch" + query, data=line("a") + line("b")))

    assert [article.backfill for article in service.submitted] == [bool(query)] * 3


async def test_an_empty_batch_has_an_empty_answer(client: Client) -> None:
    """No lines, no answers."""
    response = await client.post("/v1/articles/batch", data=b"")

    assert (response.status, await response.read()) == (200, b"")


@pytest.mark.parametrize(
    "failure", [StoreUnavailable("The store does not answer."), ZeroDivisionError("hidden")]
)
async def test_failures_become_error_lines(client: Client, service: FakeService, failure: Exception) -> None:
    """A store that is unavailable or a bug is reported per line, so that the client knows what to retry."""
    service.failure = failure
    rows = await answers(await client.post("/v1/articles/batch", data=line("a") + b"{\n" + line("b")))

    assert [row["line"] for row in rows] == [1, 2, 3]
    assert rows[0]["error"]["status"] in (500, 503)
    assert rows[1]["error"]["status"] == 400
    assert "hidden" not in json.dumps(rows)


async def test_long_lines_and_too_many_lines_are_rejected() -> None:
    """A line over max_body_bytes fails alone; exceeding max_batch_lines ends the batch with one error."""
    service = FakeService(Settings(store_url="memory", max_body_bytes=2048, max_batch_lines=4))
    async with serving(service) as client:
        body = line("a") + line("long", "x" * 500_000) + line("b") + line("c") + line("d") + line("e")
        rows = await answers(await client.post("/v1/articles/batch", data=body))

    assert [row.get("id") or row["line"] for row in rows] == ["a", 2, "b", "c", 5]
    assert [row["error"]["code"] for row in rows if "error" in row] == ["too_large", "too_large"]
    assert set(service.stored) == {"a", "b", "c"}


async def test_the_line_length_limit_is_exact() -> None:
    """A line of exactly the limit is accepted, one byte more is not, with either line end."""
    service = FakeService(Settings(store_url="memory", max_body_bytes=1024))
    fits = line("a", "y" * (1024 - len(line("a", "y")) + 2)).rstrip()
    assert len(fits) == 1024
    async with serving(service) as client:
        body = fits + b"\r\n" + fits + b" \n" + fits.replace(b"y", b"yy", 1) + b"\n" + fits
        rows = await answers(await client.post("/v1/articles/batch", data=body))

    assert ["error" in row for row in rows] == [False, False, True, False]


async def test_answers_are_sent_while_lines_still_arrive(client: Client) -> None:
    """A crawler may keep a batch open: each line is answered before the next one is sent."""
    ready: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def body() -> AsyncIterator[bytes]:
        while (data := await ready.get()) is not None:
            yield data

    ready.put_nowait(line("a"))
    async with client.post("/v1/articles/batch", data=body()) as response:
        assert json.loads(await response.content.readline())["id"] == "a"
        ready.put_nowait(line("b"))
        assert json.loads(await response.content.readline())["id"] == "b"
        ready.put_nowait(None)
        assert await response.content.read() == b""


async def test_a_client_may_send_everything_before_it_reads(service: FakeService) -> None:
    """This must not deadlock."""
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


async def test_a_stalled_batch_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """After too long a pause the last line reports it."""
    end = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield line("a")
        await end.wait()

    monkeypatch.setattr("aggregator.http.body.BODY_TIMEOUT_S", 0.5)
    service = FakeService()
    async with serving(service) as client, client.post("/v1/articles/batch", data=body()) as response:
        rows = [json.loads(await response.content.readline()) for _ in range(2)]
        end.set()

    assert rows[0]["id"] == "a"
    assert (rows[1]["line"], rows[1]["error"]["code"]) == (2, "slow_body")


async def test_a_disconnect_during_a_batch_is_harmless(client: Client, service: FakeService) -> None:
    """The batch stops; the service continues to handle requests."""
    started = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
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
async def test_other_encodings_are_rejected(client: Client, encoding: str) -> None:
    """Only identity and gzip, for single articles and batches alike."""
    for path in ("/v1/articles", "/v1/articles/batch"):
        response = await client.post(
            path, data=b"xx", headers={"Content-Encoding": encoding}, skip_auto_headers=["Content-Encoding"]
        )
        body = await response.json(content_type="application/problem+json")
        assert (response.status, body["code"]) == (415, "unsupported_encoding"), path


async def test_a_gzip_bomb_is_stopped_at_the_limit(client: Client) -> None:
    """200 MB of zeros in 200 kB: rejected as soon as the limit is exceeded."""
    data = gzip.compress(bytes(200_000_000), 9)
    headers = {"Content-Encoding": "gzip"}
    single = await client.post("/v1/articles", data=data, headers=headers)
    rows = await answers(await client.post("/v1/articles/batch", data=data, headers=headers))

    assert single.status == 413
    assert [row["error"]["code"] for row in rows] == ["too_large"]


async def test_blank_lines_count_towards_the_limit(client: Client) -> None:
    """30 kB of gzip can hold 30 million of them; reading ends at max_batch_lines."""
    bomb = gzip.compress(b"\n" * 30_000_000)
    async with client.post(
        "/v1/articles/batch",
        data=bomb,
        headers={"Content-Encoding": "gzip"},
    ) as response:
        (row,) = (await response.text()).splitlines()

    assert json.loads(row)["line"] == 10_001
    assert json.loads(row)["error"]["code"] == "too_large"


async def test_several_gzip_members_and_uncompressed_bodies_are_accepted(client: Client) -> None:
    """A body declared as gzip that is not compressed is read unchanged."""
    headers = {"Content-Encoding": "gzip"}
    data = gzip.compress(line("a")) + gzip.compress(line("b"))
    for body, expected in [(data, ["a", "b"]), (line("c"), ["c"])]:
        rows = await answers(await client.post("/v1/articles/batch", data=body, headers=headers))
        assert [row["id"] for row in rows] == expected
