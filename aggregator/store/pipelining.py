"""RESP pipelining: requests of many tasks share few connections; replies arrive in the order of the requests.

redis-py only opens a connection: it would copy replies several times, which took longer than the server's
work. **Nothing is retried**: requests in flight fail when their connection ends or a reply is overdue.

A cancelled request keeps its position in the queue, so no other request gets its replies. Replies that arrive
together are delivered together, and only if all of them are valid and expected: after one reply too many it
is unknown which request the others belong to.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, cast

import hiredis
from redis import exceptions as driver
from redis._parsers import BaseParser
from redis.asyncio.connection import AbstractConnection

Command = tuple[Any, ...]

PIPELINED_CONNECTIONS = 4
_PING = hiredis.pack_command(("PING",))
# Returned by the parser for an incomplete reply; its default, False, is also a value of RESP.
_INCOMPLETE = object()


class PipelinedPool:
    """Executes commands on the least loaded of ``count`` pipelined connections. Raises errors of redis-py.

    ``timeout_s``: limit for the replies of a request. A connection without traffic for more than
    ``max_idle_s`` is tested with PING before use, since a middlebox may have dropped it.
    """

    def __init__(
        self,
        make_connection: Callable[[], AbstractConnection],
        *,
        count: int,
        timeout_s: float,
        max_idle_s: float,
    ) -> None:
        self._options = make_connection, timeout_s, max_idle_s
        self._connections = [_ReconnectingConnection(*self._options) for _ in range(count)]

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """Replies in the order of ``commands``; the reply of a rejected command is its error."""
        return await min(self._connections, key=attrgetter("in_flight")).execute(commands)

    async def ask_anew(self, command: Command) -> Any:
        """The reply on a connection of its own, which leads where the address does now."""
        probe = _ReconnectingConnection(*self._options)
        try:
            return (await probe.execute([command]))[0]
        finally:
            probe.close()

    def close(self) -> None:
        """Close the connections; requests in flight fail, the next ones connect again."""
        for connection in self._connections:
            connection.close()


class _ReconnectingConnection:
    """One connection, opened at its first use and again after it ended."""

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
        """Connect, in one attempt for all waiting requests, so that they wait for a hung server once."""
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
            del attempt  # breaks a reference cycle, see ``_PipelinedConnection.execute``

    async def _ping_or_reconnect(self) -> _PipelinedConnection:
        connection = self._connection
        if connection is not None and not connection.is_recently_used(self._max_idle_s):
            # A connection that was dropped on the way fails here and is replaced.
            with suppress(driver.ConnectionError, driver.TimeoutError):
                await connection.execute(_PING, 1)
        if connection is None or not connection.is_open:
            opened, task = self._make_connection(), asyncio.current_task()
            try:
                try:
                    await opened.connect()  # type: ignore[no-untyped-call]
                finally:  # ``connect`` may have swallowed the cancellation, or failed by it
                    if task and task.cancelling():
                        raise asyncio.CancelledError
            except BaseException:
                await opened.disconnect(nowait=True)
                raise
            connection = self._connection = _PipelinedConnection(opened, self._timeout_s)
        return connection

    def _on_connect_done(self, attempt: asyncio.Task[_PipelinedConnection]) -> None:
        self._connect_task = None
        if not attempt.cancelled():
            attempt.exception()  # mark as retrieved: the waiting requests may all be cancelled

    def close(self) -> None:
        if self._connect_task is not None:
            self._connect_task.cancel()
        if self._connection is not None:
            self._connection.fail(driver.ConnectionError("closed"))
            self._connection = None


@dataclass(slots=True)
class _PendingRequest:
    future: asyncio.Future[list[Any]]
    expected_replies: int
    deadline_s: float
    replies: list[Any] = field(default_factory=list)


class _PipelinedConnection(asyncio.Protocol):
    """An open connection whose transport was taken over from redis-py."""

    def __init__(self, driver_connection: AbstractConnection, timeout_s: float) -> None:
        # redis-py closes the transport when its connection object is collected, so its references are
        # removed; the writer would close it too, so it is kept here.
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
        self._pending_replies = 0
        self._timeout_handle: asyncio.TimerHandle | None = None
        self._last_received_s = self._loop.time()
        self.is_open = not self._transport.is_closing()

    def is_recently_used(self, max_idle_s: float) -> bool:
        is_recent = bool(self._requests) or self._loop.time() - self._last_received_s < max_idle_s
        return self.is_open and is_recent

    async def execute(self, request: bytes, expected_replies: int) -> list[Any]:
        if not self.is_open:
            raise driver.ConnectionError("the connection has ended")
        pending = _PendingRequest(
            self._loop.create_future(), expected_replies, self._loop.time() + self._timeout_s
        )
        self._requests.append(pending)
        self._pending_replies += expected_replies
        self._transport.write(request)
        if self._timeout_handle is None:
            self._timeout_handle = self._loop.call_at(pending.deadline_s, self._on_timeout)
        try:
            return await pending.future
        finally:
            # The traceback of an error refers to this frame, and the frame through the future to the error: a
            # reference cycle that would keep the locals of all callers alive until a garbage collection.
            del pending

    def data_received(self, data: bytes) -> None:
        self._last_received_s = self._loop.time()
        replies: list[Any] = []
        try:
            self._parser.feed(data)
            while (reply := self._parser.gets()) is not _INCOMPLETE:
                replies.append(reply)
            if len(replies) > self._pending_replies:
                raise driver.InvalidResponse("unexpected reply")
        except Exception as error:  # any type: a mapping with a list as a key is a TypeError
            self.fail(driver.ConnectionError(f"not a reply of a Redis server: {error}"))
            return
        for reply in replies:
            self._deliver_reply(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self.fail(driver.ConnectionError("the connection was closed"))

    def fail(self, error: driver.RedisError) -> None:
        self.is_open = False
        if self._timeout_handle is not None:
            self._timeout_handle.cancel()
            self._timeout_handle = None
        self._transport.abort()
        requests, self._requests = self._requests, deque()
        for request in requests:
            if not request.future.done():
                request.future.set_exception(type(error)(*error.args))

    def _deliver_reply(self, reply: Any) -> None:
        self._pending_replies -= 1
        first = self._requests[0]
        first.replies.append(reply)
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
            self.fail(driver.TimeoutError("no reply in time"))
        else:
            self._timeout_handle = self._loop.call_at(due_s, self._on_timeout)
