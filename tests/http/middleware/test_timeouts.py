"""Callers that take their time, over real sockets: they are let go, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving

BRIEF = Settings(store_url="memory", header_timeout_seconds=0.2, body_timeout_seconds=0.2)
GOOD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


async def everything(reader: asyncio.StreamReader) -> bytes:
    """What comes until the other side leaves, also when it slams the door."""
    parts = []
    try:
        while part := await reader.read(4096):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


async def ended(client, *pieces: bytes, pause_s: float = 0.05) -> bytes:
    """What arrives until the server closes a connection that sends ``pieces`` with pauses, the last for ever."""
    reader, writer = await asyncio.open_connection(client.host, client.port)
    answer = asyncio.ensure_future(everything(reader))
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


async def test_a_head_that_never_ends_is_cut_off() -> None:
    """From the first byte, behind an answered request, and when not a byte comes; a hundred of them at once."""
    async with serving(FakeService(BRIEF)) as client:
        drips = [ended(client, b"GET /healthz HTTP/1.1\r\n", b"X-A: b\r\n") for _ in range(100)]
        silent = ended(client, b"")
        behind = ended(client, GOOD, b"GET /healthz HTTP/1.1\r\n", b"X-A: b\r\n")
        async with asyncio.timeout(10):
            others = [(await client.get("/healthz")).status for _ in range(20)]
        answers = await asyncio.gather(*drips, silent, behind)

    assert others == [200] * 20
    assert set(answers[:-1]) == {b""}
    assert answers[-1].startswith(b"HTTP/1.1 200 ")
    assert answers[-1].count(b"HTTP/1.1") == 1


async def test_a_body_that_drips_is_answered_408() -> None:
    """The deadline is for the whole body, however steadily it drips."""
    head = b"POST /v1/articles HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
    async with serving(FakeService(BRIEF)) as client:
        answers = await asyncio.gather(*(ended(client, head + b"{", b" ") for _ in range(20)))

    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)


async def test_who_keeps_the_pace_is_served_again_and_again() -> None:
    """Pauses between requests are no part of a head; one that comes in pieces within the time is read."""
    async with serving(FakeService(BRIEF)) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        for _ in range(3):
            for piece in (GOOD[:7], GOOD[7:20], GOOD[20:]):
                writer.write(piece)
                await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0.3)
        writer.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux gives such connections up")
async def test_who_takes_no_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many it asked for: its next word finds nobody."""
    monkeypatch.setattr("aggregator.http.middleware.timeouts.WRITE_STALL_TIMEOUT_S", 0.5)
    asks = GOOD.replace(b"/healthz", b"/openapi.json") * 100
    never = asyncio.get_running_loop().create_future()
    async with serving(FakeService(BRIEF)) as client:
        with socket.socket() as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            caller.connect((client.host, client.port))
            caller.setblocking(False)
            with pytest.raises(ConnectionError):
                async with asyncio.timeout(20):
                    while True:
                        with contextlib.suppress(BlockingIOError):
                            caller.send(asks)
                        await asyncio.wait([never], timeout=0.05)
