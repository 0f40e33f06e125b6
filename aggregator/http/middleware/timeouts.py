"""Connection timeouts that aiohttp lacks (headers, stalled writes), and problems for malformed requests.

Header timeout: aiohttp limits how long a connection may be idle, but not how long a request's headers may
take, so a client that sends one byte at a time could hold a connection open. The timer starts with the
connection, or with the first bytes after an answered request, and stops when the headers are complete. Bodies
have their own timeout (``body.py``).

Write stall: a peer that stops reading would hold a connection open indefinitely (zero window), even after
this side has closed it. TCP_USER_TIMEOUT (RFC 5482, Linux) aborts it.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from aggregator.http.middleware import errors
from aggregator.http.middleware.observability import SECURITY_HEADERS
from aggregator.http.middleware.rejected_log import RejectedConnectionLog

# Time without any acknowledged byte after which the kernel aborts the connection.
WRITE_STALL_TIMEOUT_S = 30.0


class TimeoutHandler(RequestHandler):
    """One connection; closed without a response when headers take longer than ``header_timeout_s``."""

    __slots__ = ("_header_timeout_s", "_header_timer", "_rejected_log")

    def __init__(
        self, *args: Any, header_timeout_s: float, rejected_log: RejectedConnectionLog, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._rejected_log = rejected_log
        self._header_timeout_s = header_timeout_s
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer for the first request's headers."""
        super().connection_made(transport)
        _set_write_stall_timeout(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the timer when the headers are complete; start it when the next request begins."""
        was_waiting = self._is_awaiting_headers()
        super().data_received(data)
        if not self._is_awaiting_headers():
            self._stop_timer()
        elif was_waiting and self._header_timer is None:
            self._start_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a malformed request with a problem instead of plain text, and close the connection."""
        # Logs internal errors, and raises if a response can no longer be sent.
        super().handle_error(request, status, exc, message)
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
    """A ``web.Server`` whose connections are TimeoutHandlers."""

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
        """The protocol instance for a new connection."""
        return TimeoutHandler(
            self,
            loop=self._loop,
            header_timeout_s=self._header_timeout_s,
            rejected_log=self._rejected_log,
            **self._kwargs,
        )


class TimeoutRunner(web.AppRunner):
    """An ``AppRunner`` that serves through a TimeoutServer."""

    __slots__ = ("_header_timeout_s",)

    def __init__(self, app: web.Application, *, header_timeout_s: float, **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        self._header_timeout_s = header_timeout_s

    async def _make_server(self) -> web.Server:
        return TimeoutServer(await super()._make_server(), self._header_timeout_s)
