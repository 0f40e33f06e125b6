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
from aggregator.http.middleware.rejected_connections import RejectedConnectionLog

# A connection whose other side takes nothing for so long is given up, whatever it waits for.
WRITE_STALL_TIMEOUT_S = 30.0


class TimeoutHandler(RequestHandler):
    """One connection. Closed, without an answer, when a head takes longer than ``header_timeout_seconds``."""

    __slots__ = ("_header_timeout_s", "_header_timer", "_rejected_log")

    def __init__(
        self, *args: Any, header_timeout_s: float, rejected_log: RejectedConnectionLog, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._rejected_log = rejected_log
        self._header_timeout_s = header_timeout_s
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The first head is due."""
        super().connection_made(transport)
        _set_write_stall_timeout(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """A head came to its end, or another one begins."""
        waiting = self._is_awaiting_headers()
        super().data_received(data)
        if not self._is_awaiting_headers():
            self._stop_timer()
        elif waiting and self._header_timer is None:
            self._start_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Nothing is due any more."""
        self._stop_timer()
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
            self._rejected_log.log(request.remote, status, exc)
        response = errors.malformed_request_response(status, exc)
        response.headers.update(SECURITY_HEADERS)
        response.force_close()
        return response

    def _is_awaiting_headers(self) -> bool:
        return self._current_request is None and not self._messages

    def _start_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._header_timer = loop.call_later(self._header_timeout_s, self._on_timeout)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _on_timeout(self) -> None:
        self._header_timer = None
        if self._is_awaiting_headers():
            self.force_close()


def _set_write_stall_timeout(transport: asyncio.BaseTransport) -> None:
    connection = transport.get_extra_info("socket")
    if connection is not None and hasattr(socket, "TCP_USER_TIMEOUT") and connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(WRITE_STALL_TIMEOUT_S * 1000))


class TimeoutServer(web.Server):
    """Makes the connections."""

    def __init__(self, server: web.Server, header_timeout_s: float) -> None:
        super().__init__(
            server.request_handler,
            request_factory=server.request_factory,
            handler_cancellation=server.handler_cancellation,
            **server._kwargs,
        )
        self._header_timeout_s = header_timeout_s
        self._rejected_log = RejectedConnectionLog()

    def __call__(self) -> RequestHandler:
        return TimeoutHandler(
            self,
            loop=self._loop,
            header_timeout_s=self._header_timeout_s,
            rejected_log=self._rejected_log,
            **self._kwargs,
        )


class TimeoutRunner(web.AppRunner):
    """An ``AppRunner`` whose connections have the deadline."""

    __slots__ = ("_header_timeout_s",)

    def __init__(self, app: web.Application, *, header_timeout_s: float, **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        self._header_timeout_s = header_timeout_s

    async def _make_server(self) -> web.Server:
        return TimeoutServer(await super()._make_server(), self._header_timeout_s)
