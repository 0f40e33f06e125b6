"""Slow clients and endless bodies over real sockets; the parts of aiohttp that are overridden."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import importlib.metadata

import pytest
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from aggregator.http import connections, server
from aggregator.settings import Settings
from tests.support.fake_service import Client, FakeService, serving
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.integration

# Long enough that a busy machine opens 100 connections and sends the first bytes of each within them.
TIMEOUT_S = 2.0
# Some times what the limits allow and what the buffers of the sockets hold.
MAX_SENT_BYTES = 40_000_000
VALID_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(name="short_timeouts")
def _short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", TIMEOUT_S)
    monkeypatch.setattr("aggregator.http.body.BODY_TIMEOUT_S", TIMEOUT_S)


async def read_until_closed(reader: asyncio.StreamReader) -> bytes:
    """All data until the peer closes or resets the connection."""
    parts = []
    try:
        while part := await reader.read(4096):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


async def send_slowly(client: Client, *pieces: bytes, pause_s: float = 0.05) -> bytes:
    """Send ``pieces`` with pauses, repeating the last; the data received until the server closes."""
    reader, writer = await asyncio.open_connection(client.host, client.port)
    answer = asyncio.ensure_future(read_until_closed(reader))
    try:
        async with asyncio.timeout(HANG_LIMIT_S):
            for piece in pieces:
                writer.write(piece)
                await asyncio.wait([answer], timeout=pause_s)
            while not answer.done():
                writer.write(pieces[-1])
                await asyncio.wait([answer], timeout=pause_s)
            return await answer
    finally:
        writer.close()


@pytest.mark.usefixtures("short_timeouts")
async def test_endless_headers_close_the_connection() -> None:
    """In a first request, after an answered one, and without any byte; 100 concurrent connections."""
    async with serving(FakeService()) as client:
        endless = [send_slowly(client, b"GET /healthz HTTP/1.1\r\n", b"X-A: b\r\n") for _ in range(100)]
        silent = send_slowly(client, b"")
        after_request = send_slowly(client, VALID_REQUEST, b"GET /healthz HTTP/1.1\r\n", b"X-A: b\r\n")
        async with asyncio.timeout(HANG_LIMIT_S):
            others = [(await client.get("/healthz")).status for _ in range(20)]
        answers = await asyncio.gather(*endless, silent, after_request)

    assert others == [200] * 20
    assert set(answers[:-1]) == {b""}
    assert answers[-1].startswith(b"HTTP/1.1 200 ")
    assert answers[-1].count(b"HTTP/1.1") == 1


@pytest.mark.usefixtures("short_timeouts")
async def test_a_slow_body_is_408() -> None:
    """The timeout is for the whole body, however steadily it arrives."""
    head = b"POST /v1/articles HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
    async with serving(FakeService()) as client:
        answers = await asyncio.gather(*(send_slowly(client, head + b"{", b" ") for _ in range(20)))

    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)


@pytest.mark.usefixtures("short_timeouts")
async def test_a_kept_connection_is_served_repeatedly() -> None:
    """Pauses between requests do not count; headers may arrive in pieces within the timeout."""
    async with serving(FakeService()) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        for _ in range(2):
            for piece in (VALID_REQUEST[:7], VALID_REQUEST[7:20], VALID_REQUEST[20:]):
                writer.write(piece)
                await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=1.2 * TIMEOUT_S)
        writer.close()


async def test_a_client_with_a_large_body_is_told_that_its_key_is_invalid() -> None:
    """Its connection does not break before it has read the answer."""
    service = FakeService()
    await service.edge.api_keys.add("a key", "crawler")
    async with serving(service) as client:
        response = await client.post(
            "/v1/articles", data=bytes(1_000_000), headers={"Authorization": "Bearer agg_wrong"}
        )
        assert response.status == 401
        assert (await response.json())["code"] == "unauthenticated"


async def test_the_lines_of_a_batch_may_be_more_than_one_body_together() -> None:
    """The limit on received bytes applies to each line."""
    settings = Settings(store_url="memory", max_body_bytes=4096)
    lines = [b'{"id": "%d", "text": "%s"}' % (i, b"x" * 2000) for i in range(200)]
    async with serving(FakeService(settings)) as client:
        response = await client.post("/v1/articles/batch", data=b"\n".join(lines))
        answers = (await response.read()).splitlines()

    assert len(answers) == 200 and b"error" not in b"".join(answers)


async def test_refused_requests_are_not_asked_for_their_body() -> None:
    """``Expect: 100-continue`` is answered only once the body is going to be read."""
    service = FakeService()
    await service.edge.api_keys.add("a key", "crawler")
    async with serving(service) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        writer.write(
            b"POST /v1/articles HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99\r\n\r\n"
        )
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()

    assert head.startswith(b"HTTP/1.1 401 ")


async def test_connections_are_limited_and_idle_ones_closed_first(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A new connection replaces the one idle for longest; if none is idle it gets 503, which is logged."""
    monkeypatch.setattr("aggregator.http.server.MAX_CONNECTIONS", 3)
    begun = b"POST /v1/articles HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"
    async with serving(FakeService()) as client:
        opened = [await asyncio.open_connection(client.host, client.port) for _ in range(3)]
        for reader, writer in opened:  # all are idle after a response
            writer.write(VALID_REQUEST)
            await reader.readuntil(b"}")
        idle, *busy = opened
        async with asyncio.timeout(HANG_LIMIT_S):
            for reader, writer in busy:
                writer.write(begun)
                await reader.readuntil(b"100 Continue")
            replacing = await asyncio.open_connection(client.host, client.port)
            closed = await read_until_closed(idle[0])
            replacing[1].write(begun)
            await replacing[0].readuntil(b"100 Continue\r\n\r\n")
            another = await asyncio.open_connection(client.host, client.port)
            refused = await read_until_closed(another[0])
            replacing[1].write(b'{"text":1}')
            answer = await replacing[0].readuntil(b"\r\n")
        for _, writer in [*opened, replacing, another]:
            writer.close()
        metrics = await (await client.get("/metrics")).text()

    assert closed in (b"", b"\n")
    assert refused.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1\r\n" in refused
    assert b'"code":"overloaded"' in refused and b"too many open connections" in refused
    assert "refused a connection from 127.0.0.1: 3 are open" in caplog.text
    assert "aggregator_connections_refused_total 1.0" in metrics
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_the_number_of_connections_leaves_room_for_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the limit on open files of the process."""
    monkeypatch.setattr("resource.getrlimit", lambda kind: (1024, 4096))
    assert server.max_connections() == 1024 - server.RESERVED_FILES
    monkeypatch.setattr("resource.getrlimit", lambda kind: (1_000_000, 1_000_000))
    assert server.max_connections() == server.MAX_CONNECTIONS


@pytest.mark.parametrize("path", ["/v1/articles", "/v1/articles/batch"])
async def test_compressed_bytes_without_content_end_the_request(path: str) -> None:
    """They count like content: after a few times the limit the client is refused."""
    settings = Settings(store_url="memory", max_body_bytes=4096)
    members = gzip.compress(b"") * 50
    chunk, sent = b"%x\r\n%s\r\n" % (len(members), members), 0
    async with serving(FakeService(settings)) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        answer = asyncio.ensure_future(read_until_closed(reader))
        head = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
        writer.write(head % path.encode())
        async with asyncio.timeout(HANG_LIMIT_S):
            with contextlib.suppress(ConnectionError):
                while not answer.done() and sent < MAX_SENT_BYTES:
                    writer.write(20 * chunk)
                    sent += 20 * len(chunk)
                    await writer.drain()
                    await asyncio.sleep(0)
            received = await answer
        writer.close()

    assert b"larger than 4096 bytes" in received


async def test_the_body_of_a_refused_request_is_read_for_a_short_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client that sends on is disconnected, whatever the limit of the body."""
    monkeypatch.setattr("aggregator.http.server.LINGERING_S", 0.3)
    service = FakeService()
    await service.edge.api_keys.add("a key", "crawler")
    head = b"POST /v1/articles HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with serving(service) as client:
        answer = await send_slowly(client, head, b"1\r\n \r\n")

    assert answer.startswith(b"HTTP/1.1 401 ")


def test_aiohttp_has_the_parts_that_are_overridden() -> None:
    """Other versions than those that ``pyproject.toml`` names may lack them."""
    read = {
        name for function in (RequestHandler.start, RequestHandler.data_received, RequestHandler.__init__)
        for name in (*function.__code__.co_names, *RequestHandler.__slots__)
    }  # fmt: skip
    used = {"_current_request", "_messages", "_keepalive_timeout", "_next_keepalive_close_time"}

    assert importlib.metadata.version("aiohttp").startswith("3.14.")
    assert used <= read and "_handle_request" in read
    assert hasattr(RequestHandler, "_pause_reading_for_buffer")
    assert hasattr(RequestHandler, "_resume_reading_for_buffer")
    assert "_make_server" in vars(web.AppRunner)
