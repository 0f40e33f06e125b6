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

PIPES = 4
_PING = hiredis.pack_command(("PING",))
_MORE = (
    object()
)  # the parser's word for an answer that is not complete; its default is a value that RESP knows


class Pipes:
    """Safe for any number of tasks of one event loop. Raises the driver's errors.

    ``make`` gives a connection of the driver that is not connected yet. ``idle_s``: a connection that was
    quiet for longer is tried first, since something on the way may have forgotten it.
    """

    def __init__(
        self, make: Callable[[], AbstractConnection], *, count: int, timeout_s: float, idle_s: float
    ) -> None:
        self._pipes = [_Pipe(make, timeout_s, idle_s) for _ in range(count)]

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Answers in the order of ``commands``; a command the server refused answers with its error."""
        return await min(self._pipes, key=_load).ask(commands)

    @property
    def waiting(self) -> int:
        """Requests that wait for their answers."""
        return sum(pipe.load for pipe in self._pipes)

    def close(self) -> None:
        """Let go of the connections; what is under way fails."""
        for pipe in self._pipes:
            pipe.close()


class _Pipe:
    """One connection, opened when it is needed."""

    def __init__(self, make: Callable[[], AbstractConnection], timeout_s: float, idle_s: float) -> None:
        self.load = 0
        self._make = make
        self._timeout_s = timeout_s
        self._idle_s = idle_s
        self._connection: _Connection | None = None
        self._opening: asyncio.Task[_Connection] | None = None

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        request = b"".join(map(hiredis.pack_command, commands))
        self.load += 1
        try:
            connection = self._connection
            if connection is None or not connection.is_fresh(self._idle_s):
                connection = await self._fresh()
            return await connection.ask(request, len(commands))
        finally:
            self.load -= 1

    async def _fresh(self) -> _Connection:
        """One attempt for all who wait: one after another they would each wait for a server that hangs."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._renewed())
            self._opening.add_done_callback(self._attempted)
        attempt = self._opening
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if attempt.cancelled():
                raise driver.ConnectionError("closed") from None
            raise
        finally:
            del attempt  # see ``_Connection.ask``

    async def _renewed(self) -> _Connection:
        connection = self._connection
        if connection is not None and connection.is_open and not connection.is_fresh(self._idle_s):
            # One that was forgotten on the way ends here, and another one is opened.
            with suppress(driver.ConnectionError, driver.TimeoutError):
                await connection.ask(_PING, 1)
        if connection is None or not connection.is_open:
            opened = self._make()
            try:
                await opened.connect()  # type: ignore[no-untyped-call]
                if (task := asyncio.current_task()) and task.cancelling():
                    raise asyncio.CancelledError  # by ``close``; connecting may have swallowed it
            except BaseException:
                await opened.disconnect(nowait=True)
                raise
            connection = self._connection = _Connection(opened, self._timeout_s)
        return connection

    def _attempted(self, attempt: asyncio.Task[_Connection]) -> None:
        self._opening = None
        if not attempt.cancelled():
            attempt.exception()  # whoever waited has it; perhaps nobody waits any more

    def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            self._connection.end(driver.ConnectionError("closed"))
            self._connection = None


@dataclass(slots=True)
class _Request:
    """Who waits for so many answers, and until when."""

    future: asyncio.Future[list[Any]]
    count: int
    due_s: float
    answers: list[Any] = field(default_factory=list)


class _Connection(asyncio.Protocol):
    """An open connection that was taken over from the driver."""

    def __init__(self, opened: AbstractConnection, timeout_s: float) -> None:
        # The driver's object would close the connection when it is forgotten, so it is emptied; its
        # writer would too, so it is kept.
        self._writer = cast(asyncio.StreamWriter, opened._writer)
        opened._writer = opened._reader = None
        self._transport = cast(asyncio.Transport, self._writer.transport)
        self._transport.set_protocol(self)
        self._loop = asyncio.get_running_loop()
        self._timeout_s = timeout_s
        self._parser = hiredis.Reader(
            protocolError=driver.InvalidResponse, replyError=BaseParser.parse_error, notEnoughData=_MORE
        )
        self._requests: deque[_Request] = deque()
        self._owed = 0  # answers
        self._watch: asyncio.TimerHandle | None = None
        self._heard_s = self._loop.time()
        self.is_open = not self._transport.is_closing()

    def is_fresh(self, idle_s: float) -> bool:
        """Open, and heard of lately, or about to be."""
        return self.is_open and (bool(self._requests) or self._loop.time() - self._heard_s < idle_s)

    async def ask(self, request: bytes, count: int) -> list[Any]:
        """Write, and wait for so many answers."""
        if not self.is_open:
            raise driver.ConnectionError("the connection has ended")
        waiting = _Request(self._loop.create_future(), count, self._loop.time() + self._timeout_s)
        self._requests.append(waiting)
        self._owed += count
        self._transport.write(request)
        if self._watch is None:
            self._watch = self._loop.call_at(waiting.due_s, self._overdue)
        try:
            return await waiting.future
        finally:
            # An error would hold this frame, and the frame by its future the error: a circle, and with it all that the
            # callers have at hand, until the collector comes by.
            del waiting

    def data_received(self, data: bytes) -> None:
        """Answers, or parts of them."""
        self._heard_s = self._loop.time()
        answers: list[Any] = []
        try:
            self._parser.feed(data)
            while (answer := self._parser.gets()) is not _MORE:
                answers.append(answer)
            if len(answers) > self._owed:
                raise driver.InvalidResponse("an answer that nobody asked for")
        except Exception as error:  # nonsense may also be a mapping whose keys are lists: a TypeError
            self.end(driver.ConnectionError(f"not an answer of a Redis server: {error}"))
            return
        for answer in answers:
            self._deliver(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side is gone."""
        self.end(driver.ConnectionError("the connection was closed"))

    def end(self, why: driver.RedisError) -> None:
        """Fail whatever waits, and close."""
        self.is_open = False
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._transport.abort()
        requests, self._requests = self._requests, deque()
        for request in requests:
            if not request.future.done():
                request.future.set_exception(type(why)(*why.args))

    def _deliver(self, answer: Any) -> None:
        self._owed -= 1
        first = self._requests[0]
        first.answers.append(answer)
        if len(first.answers) == first.count:
            self._requests.popleft()
            if not first.future.done():
                first.future.set_result(first.answers)

    def _overdue(self) -> None:
        self._watch = None
        if not self._requests:
            return
        due_s = self._requests[0].due_s
        if due_s <= self._loop.time():
            self.end(driver.TimeoutError("no answer in time"))
        else:
            self._watch = self._loop.call_at(due_s, self._overdue)


def _load(pipe: _Pipe) -> int:
    return pipe.load
