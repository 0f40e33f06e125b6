"""The HTTP server: listening, shutdown, malformed requests."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import aiohttp
import pytest
import uvloop

from aggregator.app import Service
from aggregator.domain import Answer, Article
from aggregator.http.server import listen, serve
from tests.support.fake_service import FakeService

pytestmark = pytest.mark.integration


def bound() -> socket.socket:
    """A socket on a free port."""
    return socket.create_server(("127.0.0.1", 0))


def start(service: FakeService, listener: socket.socket | None = None, **options: Any) -> asyncio.Task[None]:
    """A task that serves a fake service, on a free port unless ``listener`` is given."""
    return asyncio.create_task(serve(cast(Service, service), listener or bound(), **options))


async def test_serve_reports_its_port_and_stops(service: FakeService) -> None:
    """After ``stop`` the port is free again."""
    ports: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    task = start(service, on_ready=ports.put_nowait, stop=stop)
    port = await ports.get()
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/healthz") as response,
    ):
        assert response.status == 200
    stop.set()
    await task

    with socket.socket() as again:
        again.bind(("127.0.0.1", port))


async def test_a_shutdown_finishes_open_requests(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that was read completely gets its response."""
    ports: asyncio.Queue[int] = asyncio.Queue()
    stop, entered, proceed = asyncio.Event(), asyncio.Event(), asyncio.Event()
    submit = service.submit

    async def slowly(article: Article, **options: Any) -> Answer:
        entered.set()
        await proceed.wait()
        return await submit(article, **options)

    monkeypatch.setattr(service, "submit", slowly)
    task = start(service, on_ready=ports.put_nowait, stop=stop)
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{await ports.get()}/v1/articles"
        posted = asyncio.create_task(session.post(url, json={"id": "a", "text": "One text."}))
        await entered.wait()
        stop.set()
        await asyncio.sleep(0)
        proceed.set()
        response = await posted
        assert response.status == 201
    await task


@pytest.mark.integration
async def test_an_interrupted_batch_is_recognizably_incomplete(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response has no end, so the client notices without counting lines."""
    monkeypatch.setattr("aggregator.http.server.DRAIN_TIMEOUT_S", 0.05)
    monkeypatch.setattr("aggregator.http.server.SHUTDOWN_TIMEOUT_S", 0.2)
    ports: asyncio.Queue[int] = asyncio.Queue()
    stop, forever = asyncio.Event(), asyncio.Event()

    async def rows() -> AsyncIterator[bytes]:
        yield b'{"id": "a", "text": "One text."}\n'
        await forever.wait()

    task = start(service, on_ready=ports.put_nowait, stop=stop)
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{await ports.get()}/v1/articles/batch"
        async with session.post(url, data=rows()) as response:
            assert json.loads(await response.content.readline())["id"] == "a"
            stop.set()
            with pytest.raises(aiohttp.ClientError):
                await response.content.read()
    await task


async def test_two_servers_accept_from_one_socket(service: FakeService) -> None:
    """One serves while the other stops."""
    ports: asyncio.Queue[int] = asyncio.Queue()
    stops = asyncio.Event(), asyncio.Event()
    with bound() as listener:
        servers = [start(service, listener.dup(), on_ready=ports.put_nowait, stop=stop) for stop in stops]
        port = await ports.get()
        assert await ports.get() == port == listener.getsockname()[1]
        stops[0].set()
        await servers[0]
        async with aiohttp.ClientSession() as session:
            assert (await session.get(f"http://127.0.0.1:{port}/healthz")).status == 200
        stops[1].set()
        await servers[1]


async def test_a_draining_server_closes_connections_with_their_next_response(service: FakeService) -> None:
    """So no client sends a request into a closed connection."""
    ports: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    task = start(service, on_ready=ports.put_nowait, stop=stop)
    reader, writer = await asyncio.open_connection("127.0.0.1", await ports.get())
    answers = []
    for _ in range(2):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        answers.append((head.split()[1], b"connection: close" in head.lower()))
        stop.set()
        await asyncio.sleep(0)

    assert answers == [(b"200", False), (b"200", True)]
    assert await reader.read() == b""
    writer.close()
    await task


async def test_disconnects_and_malformed_requests_log_no_tracebacks(
    service: FakeService, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise any client could fill the log."""
    ports: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    task = start(service, on_ready=ports.put_nowait, stop=stop)
    port = await ports.get()
    head = b"POST /v1/articles HTTP/1.1\r\nHost: x\r\n"
    for rest in (b"Content-Length: some\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + rest)
        answered, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert answered.startswith(b"HTTP/1.0 400 ") and b"aiohttp" not in answered
        assert json.loads(body)["detail"] == "Not a valid HTTP/1.1 request."
        writer.close()
    for path in (b"/v1/articles", b"/v1/articles/batch"):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        writer.transport.abort()
    stop.set()
    await task

    assert [record for record in caplog.records if record.exc_info] == []


class Counted(asyncio.Protocol):
    """Counts connections."""

    def __init__(self, accepted: list[asyncio.BaseTransport]) -> None:
        self._accepted = accepted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it."""
        self._accepted.append(transport)


async def turns_until_accepted(number: int) -> int:
    """Turns of the event loop until ``number`` connections that wait already are accepted."""
    accepted: list[asyncio.BaseTransport] = []
    servers = await listen(lambda: Counted(accepted), bound())
    address = servers[0].sockets[0].getsockname()
    with contextlib.ExitStack() as clients:
        for _ in range(number):
            clients.enter_context(socket.create_connection(address))  # complete without an accept
        turns = 0
        while len(accepted) < number:
            await asyncio.sleep(0)
            turns += 1
        for transport in accepted:
            transport.abort()  # type: ignore[attr-defined]
    for server in servers:
        server.close()
    return turns


@pytest.mark.integration
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_waiting_connections_are_accepted_together(run: Callable[..., int]) -> None:
    """Not one in each turn, whichever event loop runs."""
    assert run(turns_until_accepted(320)) < 40


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_bound_socket_is_listened_on(run: Callable[..., int]) -> None:
    """A socket that several processes share; it takes connections until all servers are closed."""

    async def connect() -> int:
        accepted: list[asyncio.BaseTransport] = []
        listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        address = listener.getsockname()
        servers = await listen(lambda: Counted(accepted), listener)
        with socket.create_connection(address):
            while not accepted:  # noqa: ASYNC110  nothing tells of an accepted connection
                await asyncio.sleep(0)
        for server in servers:
            server.close()
        for _ in range(3):  # the event loop closes the sockets in its next turn
            await asyncio.sleep(0)
        with socket.socket() as client:
            return client.connect_ex(address)

    assert run(connect()) == errno.ECONNREFUSED
