"""Slow clients over real sockets: they are disconnected, and other clients are not delayed."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from aggregator.settings import Settings
from tests.support.fake_service import Client, FakeService, serving

SHORT_TIMEOUTS = Settings(store_url="memory", header_timeout_seconds=0.2, body_timeout_seconds=0.2)
VALID_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


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
        async with asyncio.timeout(10):
            for piece in pieces:
                writer.write(piece)
                await asyncio.wait([answer], timeout=pause_s)
            while not answer.done():
                writer.write(pieces[-1])
                await asyncio.wait([answer], timeout=pause_s)
            return await answer
    finally:
        writer.close()


async def test_endless_headers_close_the_connection() -> None:
    """In a first request, after an answered one, and without any byte; 100 concurrent connections."""
    async with serving(FakeService(SHORT_TIMEOUTS)) as client:
        endless = [send_slowly(client, b"GET /healthz HTTP/1.1\r\n", b"X-A: b\r\n") for _ in range(100)]
        silent = send_slowly(client, b"")
        after_request = send_slowly(client, VALID_REQUEST, b"GET /healthz HTTP/1.1\r\n", b"X-A: b\r\n")
        async with asyncio.timeout(10):
            others = [(await client.get("/healthz")).status for _ in range(20)]
        answers = await asyncio.gather(*endless, silent, after_request)

    assert others == [200] * 20
    assert set(answers[:-1]) == {b""}
    assert answers[-1].startswith(b"HTTP/1.1 200 ")
    assert answers[-1].count(b"HTTP/1.1") == 1


async def test_a_slow_body_is_408() -> None:
    """The timeout is for the whole body, however steadily it arrives."""
    head = b"POST /v1/articles HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
    async with serving(FakeService(SHORT_TIMEOUTS)) as client:
        answers = await asyncio.gather(*(send_slowly(client, head + b"{", b" ") for _ in range(20)))

    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)


async def test_a_kept_connection_is_served_repeatedly() -> None:
    """Pauses between requests do not count; headers may arrive in pieces within the timeout."""
    async with serving(FakeService(SHORT_TIMEOUTS)) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        for _ in range(3):
            for piece in (VALID_REQUEST[:7], VALID_REQUEST[7:20], VALID_REQUEST[20:]):
                writer.write(piece)
                await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0.3)
        writer.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs TCP_USER_TIMEOUT (Linux)")
async def test_a_client_that_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """After WRITE_STALL_TIMEOUT_S its next write fails."""
    monkeypatch.setattr("aggregator.http.middleware.timeouts.WRITE_STALL_TIMEOUT_S", 0.5)
    requests = VALID_REQUEST.replace(b"/healthz", b"/openapi.json") * 100
    never = asyncio.get_running_loop().create_future()
    async with serving(FakeService(SHORT_TIMEOUTS)) as client:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            connection.connect((client.host, client.port))
            connection.setblocking(False)
            with pytest.raises(ConnectionError):
                async with asyncio.timeout(20):
                    while True:
                        with contextlib.suppress(BlockingIOError):
                            connection.send(requests)
                        await asyncio.wait([never], timeout=0.05)
