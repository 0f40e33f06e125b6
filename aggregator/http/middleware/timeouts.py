"""A deadline for the head of each request, one for taking the answer, and an answer to what is no request.

Whoever sends a head a byte at a time holds a connection no longer: aiohttp bounds how long a
connection may stand idle; a head that never ends would take as much. The deadline begins with the connection, or with
the first bytes behind an answered request, and ends when the head is whole. Bodies have deadlines of their own
(``bodies.py``).

Whoever takes no answers would hold a connection and what waits in it for ever: its kernel goes on saying that it has no
room, also when we have closed our side. So ours is told to give such a connection up (RFC 5482, on Linux).
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from aggregator.http.middleware import errors
from aggregator.http.middleware.observability import SECURITY_HEADERS
from aggregator.http.middleware.rejected_connections import TurnedAway

# A connection whose other side takes nothing for so long is given up, whatever it waits for.
TAKE_SECONDS = 30.0


class Handler(RequestHandler):
    """One connection. Closed, without an answer, when a head takes longer than ``header_seconds``."""

    __slots__ = ("_header_seconds", "_header_timer", "_turned_away")

    def __init__(self, *args: Any, header_seconds: float, turned_away: TurnedAway, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turned_away = turned_away
        self._header_seconds = header_seconds
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The first head is due."""
        super().connection_made(transport)
        _give_up_unless_taken(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        """A head came to its end, or another one begins."""
        waiting = self._waits_for_a_head()
        super().data_received(data)
        if not self._waits_for_a_head():
            self._end()
        elif waiting and self._header_timer is None:
            self._begin()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Nothing is due any more."""
        self._end()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Bytes that are no request: a problem like any other, where aiohttp answers in plain text, and the end."""
        super().handle_error(
            request, status, exc, message
        )  # logs what is a fault of ours, and sees whether it can be answered at all
        if status < 500:
            self._turned_away.tell(request.remote, status, exc)
        response = errors.unreadable(status, exc)
        response.headers.update(SECURITY_HEADERS)
        response.force_close()
        return response

    def _waits_for_a_head(self) -> bool:
        return self._current_request is None and not self._messages

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._header_timer = loop.call_later(self._header_seconds, self._late)

    def _end(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _late(self) -> None:
        self._header_timer = None
        if self._waits_for_a_head():
            self.force_close()


def _give_up_unless_taken(transport: asyncio.BaseTransport) -> None:
    connection = transport.get_extra_info("socket")
    if connection is not None and hasattr(socket, "TCP_USER_TIMEOUT") and connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(TAKE_SECONDS * 1000))


class Server(web.Server):
    """Makes the connections."""

    def __init__(self, made: web.Server, header_seconds: float) -> None:
        super().__init__(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            **made._kwargs,
        )
        self._header_seconds = header_seconds
        self._turned_away = TurnedAway()

    def __call__(self) -> RequestHandler:
        return Handler(
            self,
            loop=self._loop,
            header_seconds=self._header_seconds,
            turned_away=self._turned_away,
            **self._kwargs,
        )


class Runner(web.AppRunner):
    """An ``AppRunner`` whose connections have the deadline."""

    __slots__ = ("_header_seconds",)

    def __init__(self, app: web.Application, *, header_seconds: float, **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        self._header_seconds = header_seconds

    async def _make_server(self) -> web.Server:
        return Server(await super()._make_server(), self._header_seconds)
