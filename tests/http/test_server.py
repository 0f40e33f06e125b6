"""Listening and leaving."""

import asyncio
import socket

import aiohttp
import pytest

from aggregator.http.server import serve


async def test_serve_tells_its_port_and_stops(service):
    """Port 0 takes a free one; after ``stop`` the port is free again."""
    told: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    task = asyncio.create_task(serve(service, "127.0.0.1", 0, ready=told.put_nowait, stop=stop))
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
    task = asyncio.create_task(serve(service, "127.0.0.1", 0, ready=told.put_nowait, stop=stop))
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


async def test_two_processes_can_share_a_port(service):
    """With reuse_port a second listener gets the same port; without it the address is taken."""
    told: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    first = asyncio.create_task(
        serve(service, "127.0.0.1", 0, reuse_port=True, ready=told.put_nowait, stop=stop)
    )
    port = await told.get()
    second = asyncio.create_task(
        serve(service, "127.0.0.1", port, reuse_port=True, ready=told.put_nowait, stop=stop)
    )

    assert await told.get() == port
    with pytest.raises(OSError, match="in use"):
        await serve(service, "127.0.0.1", port, stop=stop)
    stop.set()
    await asyncio.gather(first, second)


async def test_callers_that_hang_up_or_speak_no_http_leave_no_tracebacks(service, caplog):
    """Whoever can reach the port could otherwise fill the log."""
    told: asyncio.Queue[int] = asyncio.Queue()
    stop = asyncio.Event()
    task = asyncio.create_task(serve(service, "127.0.0.1", 0, ready=told.put_nowait, stop=stop))
    port = await told.get()
    head = b"POST /v1/articles HTTP/1.1\r\nHost: x\r\n"
    for rest in (b"Content-Length: some\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + rest)
        assert (await reader.read()).startswith(b"HTTP/1.0 400 ")
        writer.close()
    for path in (b"/v1/articles", b"/v1/articles/batch"):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        writer.transport.abort()
    stop.set()
    await task

    assert [record for record in caplog.records if record.exc_info] == []
