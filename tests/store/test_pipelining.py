"""One connection for many requests: answers find their askers, whatever ends in between."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis import exceptions as driver
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from aggregator.store.pipelining import PipelinedPool


class Babbler:
    """A server whose answers the test writes."""

    def __init__(self) -> None:
        self.connections: list[asyncio.StreamWriter] = []
        self.requests: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the driver's greeting; what comes after it is queued with the number of its connection."""
        number = len(self.connections)
        self.connections.append(writer)
        while data := await reader.read(65536):
            if b"SETINFO" in data:
                writer.write(b"+OK\r\n" * data.count(b"SETINFO"))
            else:
                self.requests.put_nowait((number, data))
        writer.close()


@asynccontextmanager
async def babbling(
    *, timeout_s: float = 5.0, idle_s: float = 25.0
) -> AsyncIterator[tuple[PipelinedPool, Babbler]]:
    """One pipe to a server that says nothing by itself."""
    babbler = Babbler()
    server = await asyncio.start_server(babbler.serve, "127.0.0.1", 0)
    async with server:
        pool = ConnectionPool(host="127.0.0.1", port=server.sockets[0].getsockname()[1], protocol=2)
        pipes = PipelinedPool(pool.make_connection, count=1, timeout_s=timeout_s, max_idle_s=idle_s)
        yield pipes, babbler
        pipes.close()
        for writer in babbler.connections:
            writer.close()


async def test_answers_in_pieces_go_to_their_askers_in_turn() -> None:
    """Three requests under way, the second one cancelled; answers come byte by byte."""
    async with babbling() as (pipes, babbler):
        tasks = [asyncio.create_task(pipes.execute([("GET", b"a")] * n)) for n in (1, 2, 1)]
        await babbler.requests.get()
        tasks[1].cancel()
        for byte in b"+one\r\n+two\r\n$-1\r\n$5\r\nth\r\nr\r\n":
            babbler.connections[0].write(bytes([byte]))
            await asyncio.sleep(0)

        assert await tasks[0] == [b"one"]
        assert await tasks[2] == [b"th\r\nr"]
        assert tasks[1].cancelled()


async def test_a_refusal_is_an_answer_like_any_other() -> None:
    """Its place in the list holds the driver's own kind of error."""
    async with babbling() as (pipes, babbler):
        task = asyncio.create_task(pipes.execute([("GET", b"a")] * 2))
        await babbler.requests.get()
        babbler.connections[0].write(b"-OOM too much\r\n+fine\r\n")
        refused, fine = await task

        assert isinstance(refused, driver.OutOfMemoryError)
        assert fine == b"fine"


@pytest.mark.parametrize(
    "nonsense",
    [
        b"220 mail ready\r\n",
        b"+one\r\n+two\r\n+three\r\n+nobody asked\r\n",
        b"+one\r\n+two\r\n$5\r\nth220 mail ready\r\n",
        b"-\xff\xfe\r\n#f\r\n220 mail ready\r\n",
        b"+one\r\n%1\r\n*0\r\n+a mapping with a list for a key\r\n",
    ],
)
async def test_nonsense_ends_the_connection(nonsense: bytes) -> None:
    """Who still waits hears of it and gets no part of it; the next request opens another connection."""
    async with babbling() as (pipes, babbler):
        task = asyncio.create_task(pipes.execute([("GET", b"a")] * 3))
        await babbler.requests.get()
        babbler.connections[0].write(nonsense)
        with pytest.raises(driver.ConnectionError, match="not an answer"):
            await task
        again = asyncio.create_task(pipes.execute([("GET", b"a")]))
        await babbler.requests.get()
        babbler.connections[1].write(b"+fresh\r\n")

        assert await again == [b"fresh"]


async def test_those_who_wait_for_one_connection_share_one_attempt() -> None:
    """A server that takes connections and says nothing: all of forty hear of it after one time limit, not forty."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        accepted.append(writer)
        await reader.read()
        writer.close()

    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        once = Retry(NoBackoff(), 0)
        pool = ConnectionPool(host="127.0.0.1", port=port, protocol=2, socket_timeout=0.2, retry=once)
        pipes = PipelinedPool(pool.make_connection, count=1, timeout_s=0.2, max_idle_s=25.0)
        asked = [asyncio.create_task(pipes.execute([("GET", b"a")])) for _ in range(40)]
        done = await asyncio.gather(*asked, return_exceptions=True)

        assert {type(error) for error in done} <= {driver.TimeoutError, driver.ConnectionError}
        assert len(accepted) == 1

        late = asyncio.create_task(pipes.execute([("GET", b"a")]))
        while len(accepted) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        pipes.close()
        with pytest.raises(driver.RedisError):  # at once, or at its time limit if the driver missed it
            await late
        assert pipes.pending_requests == 0


async def test_everybody_behind_an_overdue_answer_hears_of_it() -> None:
    """The connection cannot be trusted any more, so all that is under way on it fails."""
    async with babbling(timeout_s=0.05) as (pipes, _):
        tasks = [asyncio.create_task(pipes.execute([("GET", b"a")])) for _ in range(3)]
        done = await asyncio.gather(*tasks, return_exceptions=True)

        assert [type(error) for error in done] == [driver.TimeoutError] * 3
        assert pipes.pending_requests == 0


async def test_a_connection_that_was_quiet_for_long_is_tried_first() -> None:
    """It does not answer the trial, so the request goes over another one, and only once."""
    async with babbling(timeout_s=1.0, idle_s=0.0) as (pipes, babbler):
        task = asyncio.create_task(pipes.execute([("GET", b"a")]))
        await babbler.requests.get()
        babbler.connections[0].write(b"+one\r\n")
        assert await task == [b"one"]

        task = asyncio.create_task(pipes.execute([("GET", b"a")]))
        tried, asked = [await babbler.requests.get() for _ in range(2)]
        assert tried[0] == 0 and b"PING" in tried[1]
        assert asked[0] == 1 and b"GET" in asked[1]
        babbler.connections[1].write(b"+two\r\n")

        assert await task == [b"two"]
