"""Requests of many tasks over few connections: each is written at once, and answers come in that order.

The driver lends a whole connection to one request at a time and copies its answer several times over;
that took longer than the server's own work on a look-up (``scripts/bench index``). Here a connection
is still opened by the driver (address, TLS, password, database), and then only requests and answers go
over it. **Nothing is repeated**: what was under way when a connection ended or an answer was overdue
fails, and whoever sent it decides.

A caller that is cancelled leaves its place in the queue, so that no answer goes to somebody else. What
arrived together is handed out together, and only if all of it was understood and asked for: one
answer too many means that nobody knows whose the others are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import hiredis
from redis import exceptions as driver
from redis._parsers import BaseParser
from redis.asyncio.connection import AbstractConnection

from aggregator.store.protocol import Command

PIPELINED_CONNECTIONS = 4
_PING = hiredis.pack_command(("PING",))
_INCOMPLETE = (
    object()
)  # the parser's word for an answer that is not complete; its default is a value that RESP knows


class PipelinedPool:
    """Safe for any number of tasks of one event loop. Raises the driver's errors.

    ``make`` gives a connection of the driver that is not connected yet. ``idle_s``: a connection that was
    quiet for longer is tried first, since something on the way may have forgotten it.
    """

    def __init__(
        self,
        make_connection: Callable[[], AbstractConnection],
        *,
        count: int,
        timeout_s: float,
        max_idle_s: float,
    ) -> None:
        self._connections = [
            _ReconnectingConnection(make_connection, timeout_s, max_idle_s) for _ in range(count)
        ]

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """Answers in the order of ``commands``; a command the server refused answers with its error."""
        return await min(self._connections, key=_in_flight).execute(commands)

    @property
    def pending_requests(self) -> int:
        """Requests that wait for their answers."""
        return sum(pipe.in_flight for pipe in self._connections)

    def close(self) -> None:
        """Let go of the connections; what is under way fails."""
        for pipe in self._connections:
            pipe.close()


class _ReconnectingConnection:
    """One connection, opened when it is needed."""

    def __init__(
        self, make_connection: Callable[[], AbstractConnection], timeout_s: float, max_idle_s: float
    ) -> None:
        self.in_flight = 0
        self._make_connection = make_connection
        self._timeout_s = timeout_s
        self._max_idle_s = max_idle_s
        self._connection: _PipelinedConnection | None = None
        self._connect_task: asyncio.Task[_PipelinedConnection] | None = None

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        request = b"".join(map(hiredis.pack_command, commands))
        self.in_flight += 1
        try:
            connection = self._connection
            if connection is None or not connection.is_recently_used(self._max_idle_s):
                connection = await self._ensure_connected()
            return await connection.execute(request, len(commands))
        finally:
            self.in_flight -= 1

    async def _ensure_connected(self) -> _PipelinedConnection:
        """One attempt for all who wait: one after another they would each wait for a server that hangs."""
        if self._connect_task is None:
            self._connect_task = asyncio.create_task(self._ping_or_reconnect())
            self._connect_task.add_done_callback(self._on_connect_done)
        attempt = self._connect_task
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if attempt.cancelled():
                raise driver.ConnectionError("closed") from None
            raise
        finally:
            del attempt  # see ``_Connection.ask``

    async def _ping_or_reconnect(self) -> _PipelinedConnection:
        connection = self._connection
        if (
            connection is not None
            and connection.is_open
            and not connection.is_recently_used(self._max_idle_s)
        ):
            # One that was forgotten on the way ends here, and another one is opened.
            with suppress(driver.ConnectionError, driver.TimeoutError):
                await connection.execute(_PING, 1)
        if connection is None or not connection.is_open:
            opened = self._make_connection()
            try:
                await opened.connect()  # type: ignore[no-untyped-call]
                if (task := asyncio.current_task()) and task.cancelling():
                    raise asyncio.CancelledError  # by ``close``; connecting may have swallowed it
            except BaseException:
                await opened.disconnect(nowait=True)
                raise
            connection = self._connection = _PipelinedConnection(opened, self._timeout_s)
        return connection

    def _on_connect_done(self, attempt: asyncio.Task[_PipelinedConnection]) -> None:
        self._connect_task = None
        if not attempt.cancelled():
            attempt.exception()  # whoever waited has it; perhaps nobody waits any more

    def close(self) -> None:
        if self._connect_task is not None:
            self._connect_task.cancel()
        if self._connection is not None:
            self._connection.fail(driver.ConnectionError("closed"))
            self._connection = None


@dataclass(slots=True)
class _PendingRequest:
    """Who waits for so many answers, and until when."""

    future: asyncio.Future[list[Any]]
    expected_replies: int
    deadline_s: float
    replies: list[Any] = field(default_factory=list)


class _PipelinedConnection(asyncio.Protocol):
    """An open connection that was taken over from the driver."""

    def __init__(self, driver_connection: AbstractConnection, timeout_s: float) -> None:
        # The driver's object would close the connection when it is forgotten, so it is emptied; its
        # writer would too, so it is kept.
        self._writer = cast(asyncio.StreamWriter, driver_connection._writer)
        driver_connection._writer = driver_connection._reader = None
        self._transport = cast(asyncio.Transport, self._writer.transport)
        self._transport.set_protocol(self)
        self._loop = asyncio.get_running_loop()
        self._timeout_s = timeout_s
        self._parser = hiredis.Reader(
            protocolError=driver.InvalidResponse, replyError=BaseParser.parse_error, notEnoughData=_INCOMPLETE
        )
        self._requests: deque[_PendingRequest] = deque()
        self._pending_replies = 0  # answers
        self._timeout_handle: asyncio.TimerHandle | None = None
        self._last_received_s = self._loop.time()
        self.is_open = not self._transport.is_closing()

    def is_recently_used(self, max_idle_s: float) -> bool:
        """Open, and heard of lately, or about to be."""
        return self.is_open and (
            bool(self._requests) or self._loop.time() - self._last_received_s < max_idle_s
        )

    async def execute(self, request: bytes, expected_replies: int) -> list[Any]:
        """Write, and wait for so many answers."""
        if not self.is_open:
            raise driver.ConnectionError("the connection has ended")
        waiting = _PendingRequest(
            self._loop.create_future(), expected_replies, self._loop.time() + self._timeout_s
        )
        self._requests.append(waiting)
        self._pending_replies += expected_replies
        self._transport.write(request)
        if self._timeout_handle is None:
            self._timeout_handle = self._loop.call_at(waiting.deadline_s, self._on_timeout)
        try:
            return await waiting.future
        finally:
            # An error would hold this frame, and the frame by its future the error: a circle, and with it all that the
            # callers have at hand, until the collector comes by.
            del waiting

    def data_received(self, data: bytes) -> None:
        """Answers, or parts of them."""
        self._last_received_s = self._loop.time()
        answers: list[Any] = []
        try:
            self._parser.feed(data)
            while (answer := self._parser.gets()) is not _INCOMPLETE:
                answers.append(answer)
            if len(answers) > self._pending_replies:
                raise driver.InvalidResponse("an answer that nobody asked for")
        except Exception as error:  # nonsense may also be a mapping whose keys are lists: a TypeError
            self.fail(driver.ConnectionError(f"not an answer of a Redis server: {error}"))
            return
        for answer in answers:
            self._deliver_reply(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side is gone."""
        self.fail(driver.ConnectionError("the connection was closed"))

    def fail(self, error: driver.RedisError) -> None:
        """Fail whatever waits, and close."""
        self.is_open = False
        if self._timeout_handle is not None:
            self._timeout_handle.cancel()
            self._timeout_handle = None
        self._transport.abort()
        requests, self._requests = self._requests, deque()
        for request in requests:
            if not request.future.done():
                request.future.set_exception(type(error)(*error.args))

    def _deliver_reply(self, answer: Any) -> None:
        self._pending_replies -= 1
        first = self._requests[0]
        first.replies.append(answer)
        if len(first.replies) == first.expected_replies:
            self._requests.popleft()
            if not first.future.done():
                first.future.set_result(first.replies)

    def _on_timeout(self) -> None:
        self._timeout_handle = None
        if not self._requests:
            return
        due_s = self._requests[0].deadline_s
        if due_s <= self._loop.time():
            self.fail(driver.TimeoutError("no answer in time"))
        else:
            self._timeout_handle = self._loop.call_at(due_s, self._on_timeout)


def _in_flight(pipe: _ReconnectingConnection) -> int:
    return pipe.in_flight
