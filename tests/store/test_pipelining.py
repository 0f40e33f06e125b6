"""RESP pipelining: replies go to their requests despite cancellation, invalid replies and timeouts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis import exceptions as driver
from redis.asyncio import Connection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from aggregator.store.pipelining import PipelinedPool

pytestmark = pytest.mark.integration


class ScriptedServer:
    """A server whose replies the test writes."""

    def __init__(self) -> None:
        self.connections: list[asyncio.StreamWriter] = []
        self.requests: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Replies to the handshake of redis-py; queues later requests with the number of their connection."""
        number = len(self.connections)
        self.connections.append(writer)
        while data := await reader.read(65536):
            if b"SETINFO" in data:
                writer.write(b"+OK\r\n" * data.count(b"SETINFO"))
            else:
                self.requests.put_nowait((number, data))
        writer.close()


@asynccontextmanager
async def scripted_server(
    *, timeout_s: float = 5.0, idle_s: float = 25.0
) -> AsyncIterator[tuple[PipelinedPool, ScriptedServer]]:
    """A pool of one connection to a server that sends nothing on its own."""
    scripted = ScriptedServer()
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    async with server:
        connections = ConnectionPool(host="127.0.0.1", port=server.sockets[0].getsockname()[1], protocol=2)
        pool = PipelinedPool(connections.make_connection, count=1, timeout_s=timeout_s, max_idle_s=idle_s)
        yield pool, scripted
        pool.close()
        for writer in scripted.connections:
            writer.close()


async def test_partial_replies_go_to_their_requests_in_order() -> None:
    """Three requests in flight, the second one cancelled; replies arrive byte by byte."""
    async with scripted_server() as (pool, scripted):
        tasks = [asyncio.create_task(pool.execute([("GET", b"a")] * n)) for n in (1, 2, 1)]
        await scripted.requests.get()
        tasks[1].cancel()
        for byte in b"+one\r\n+two\r\n$-1\r\n$5\r\nth\r\nr\r\n":
            scripted.connections[0].write(bytes([byte]))
            await asyncio.sleep(0)

        assert await tasks[0] == [b"one"]
        assert await tasks[2] == [b"th\r\nr"]
        assert tasks[1].cancelled()


async def test_an_error_reply_is_returned_in_its_position() -> None:
    """It is an error of redis-py in the list of replies."""
    async with scripted_server() as (pool, scripted):
        task = asyncio.create_task(pool.execute([("GET", b"a")] * 2))
        await scripted.requests.get()
        scripted.connections[0].write(b"-OOM too much\r\n+fine\r\n")
        rejected, accepted = await task

        assert isinstance(rejected, driver.OutOfMemoryError)
        assert accepted == b"fine"


@pytest.mark.parametrize(
    "data",
    [
        b"220 mail ready\r\n",
        b"+one\r\n+two\r\n+three\r\n+nobody asked\r\n",
        b"+one\r\n+two\r\n$5\r\nth220 mail ready\r\n",
        b"-\xff\xfe\r\n#f\r\n220 mail ready\r\n",
        b"+one\r\n%1\r\n*0\r\n+a mapping with a list for a key\r\n",
    ],
)
async def test_an_invalid_reply_ends_the_connection(data: bytes) -> None:
    """Requests in flight fail without a partial reply; the next request opens another connection."""
    async with scripted_server() as (pool, scripted):
        task = asyncio.create_task(pool.execute([("GET", b"a")] * 3))
        await scripted.requests.get()
        scripted.connections[0].write(data)
        with pytest.raises(driver.ConnectionError, match="not a reply"):
            await task
        again = asyncio.create_task(pool.execute([("GET", b"a")]))
        await scripted.requests.get()
        scripted.connections[1].write(b"+fresh\r\n")

        assert await again == [b"fresh"]


async def test_waiting_requests_share_one_connection_attempt() -> None:
    """With a server that accepts connections and sends nothing, forty requests fail after one timeout."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        accepted.append(writer)
        await reader.read()
        writer.close()

    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        no_retry = Retry(NoBackoff(), 0)
        connections = ConnectionPool(
            host="127.0.0.1", port=port, protocol=2, socket_timeout=0.2, retry=no_retry
        )
        pool = PipelinedPool(connections.make_connection, count=1, timeout_s=0.2, max_idle_s=25.0)
        tasks = [asyncio.create_task(pool.execute([("GET", b"a")])) for _ in range(40)]
        done = await asyncio.gather(*tasks, return_exceptions=True)

        assert {type(error) for error in done} <= {driver.TimeoutError, driver.ConnectionError}
        assert len(accepted) == 1

        late = asyncio.create_task(pool.execute([("GET", b"a")]))
        while len(accepted) < 2:  # noqa: ASYNC110  waits for the server side
            await asyncio.sleep(0)
        pool.close()
        with pytest.raises(
            driver.RedisError
        ):  # immediately, or at its timeout if redis-py missed the cancellation
            await late
        assert not any(each.in_flight for each in pool._connections)


async def test_a_cancelled_connection_attempt_is_no_error() -> None:
    """redis-py may fail by the cancellation: at the end of a start asyncio would log it with a traceback."""

    class Connecting(Connection):
        async def connect(self) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise driver.ConnectionError("lost") from None

    begun = asyncio.Event()
    pool = PipelinedPool(Connecting, count=1, timeout_s=5.0, max_idle_s=25.0)
    request = asyncio.create_task(pool.execute([("GET", b"a")]))
    await begun.wait()
    attempt = pool._connections[0]._connect_task
    pool.close()

    with pytest.raises(driver.ConnectionError, match="closed"):
        await request
    assert attempt is not None and attempt.cancelled()


async def test_an_overdue_reply_fails_all_requests_in_flight() -> None:
    """The state of the connection is unknown, so every request on it fails with a timeout."""
    async with scripted_server(timeout_s=0.05) as (pool, _):
        tasks = [asyncio.create_task(pool.execute([("GET", b"a")])) for _ in range(3)]
        done = await asyncio.gather(*tasks, return_exceptions=True)

        assert [type(error) for error in done] == [driver.TimeoutError] * 3
        assert not any(each.in_flight for each in pool._connections)


async def test_an_idle_connection_is_tested_before_use() -> None:
    """It does not reply to PING, so the request is sent once, over a new connection."""
    async with scripted_server(timeout_s=1.0, idle_s=0.0) as (pool, scripted):
        task = asyncio.create_task(pool.execute([("GET", b"a")]))
        await scripted.requests.get()
        scripted.connections[0].write(b"+one\r\n")
        assert await task == [b"one"]

        task = asyncio.create_task(pool.execute([("GET", b"a")]))
        test, request = [await scripted.requests.get() for _ in range(2)]
        assert test[0] == 0 and b"PING" in test[1]
        assert request[0] == 1 and b"GET" in request[1]
        scripted.connections[1].write(b"+two\r\n")

        assert await task == [b"two"]
