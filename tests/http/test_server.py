"""Listening and leaving."""

import asyncio
import json
import socket

import aiohttp
import pytest

from aggregator.http.server import serve


async def test_serve_tells_its_port_and_stops(service):
    """Port 0 takes a free one; after ``stop`` the port is free again."""
    told: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    task = asyncio.create_task(serve(service, "127.0.0.1", 0, on_ready=told.put_nowait, stop=stop))
    port = await told.get()
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/healthz") as response,
    ):
        assert response.status == 200
    stop.set()
    await task

    with socket.socket() as again:
        again.bind(("127.0.0.1", port))


async def test_a_request_under_way_is_finished(service):
    """Shutdown waits for the answer of a request that was taken in."""
    told: asyncio.Queue[int] = asyncio.Queue()
    stop, entered, leave = asyncio.Event(), asyncio.Event(), asyncio.Event()
    submit = service.submit

    async def slowly(article, *, dry_run=False):
        entered.set()
        await leave.wait()
        return await submit(article, dry_run=dry_run)

    service.submit = slowly
    task = asyncio.create_task(serve(service, "127.0.0.1", 0, on_ready=told.put_nowait, stop=stop))
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{await told.get()}/v1/articles"
        posted = asyncio.create_task(session.post(url, json={"id": "a", "text": "One text."}))
        await entered.wait()
        stop.set()
        await asyncio.sleep(0)
        leave.set()
        response = await posted
        assert response.status == 201
    await task


async def test_a_batch_that_is_cut_off_does_not_look_whole(service, monkeypatch):
    """Its answer has no end, so whoever counts no lines knows as well that it must be sent again."""
    monkeypatch.setattr("aggregator.http.server.DRAIN_TIMEOUT_S", 0.05)
    monkeypatch.setattr("aggregator.http.server.SHUTDOWN_TIMEOUT_S", 0.2)
    told: asyncio.Queue[int] = asyncio.Queue()
    stop, forever = asyncio.Event(), asyncio.Event()

    async def rows():
        yield b'{"id": "a", "text": "One text."}\n'
        await forever.wait()

    task = asyncio.create_task(serve(service, "127.0.0.1", 0, on_ready=told.put_nowait, stop=stop))
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{await told.get()}/v1/articles/batch"
        async with session.post(url, data=rows()) as response:
            assert json.loads(await response.content.readline())["id"] == "a"
            stop.set()
            with pytest.raises(aiohttp.ClientError):
                await response.content.read()
    await task


async def test_two_servers_can_accept_from_one_socket(service):
    """Each answers while the other leaves; another listener finds the address taken."""
    told: asyncio.Queue[int] = asyncio.Queue()
    stops = asyncio.Event(), asyncio.Event()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        servers = [
            asyncio.create_task(
                serve(service, "", 0, listener=listener.dup(), on_ready=told.put_nowait, stop=stop)
            )
            for stop in stops
        ]
        port = await told.get()
        assert await told.get() == port == listener.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            await serve(service, "127.0.0.1", port, stop=stops[0])
        stops[0].set()
        await servers[0]
        async with aiohttp.ClientSession() as session:
            assert (await session.get(f"http://127.0.0.1:{port}/healthz")).status == 200
        stops[1].set()
        await servers[1]


async def test_a_server_that_leaves_says_so_on_every_open_connection(service):
    """The next answer of a kept connection is its last, so no caller sends into a connection that is closed."""
    told: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    task = asyncio.create_task(serve(service, "127.0.0.1", 0, on_ready=told.put_nowait, stop=stop))
    reader, writer = await asyncio.open_connection("127.0.0.1", await told.get())
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


async def test_callers_that_hang_up_or_speak_no_http_leave_no_tracebacks(service, caplog):
    """Whoever can reach the port could otherwise fill the log."""
    told: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    task = asyncio.create_task(serve(service, "127.0.0.1", 0, on_ready=told.put_nowait, stop=stop))
    port = await told.get()
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
