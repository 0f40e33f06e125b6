"""Connections with limits that aiohttp lacks: header timeout, stalled writes, bytes received per request.

Header timeout: aiohttp limits how long a connection may be idle, but not how long a request's headers may
take, so a client that sends one byte at a time could hold a connection open. The timer starts with the
connection, or with the first bytes after an answered request, and stops when the headers are complete. Bodies
have their own timeout (``body.py``).

Write stall: a peer that stops reading would hold a connection open indefinitely (zero window), even after
this side has closed it. TCP_USER_TIMEOUT (RFC 5482, Linux) aborts it.

Bytes received: the bytes that arrive while a body is incomplete are counted here, before HTTP chunks and gzip
are decoded, so overhead counts too. This also bounds what is discarded of the body of a request that was
answered without it: 64 kB if a client without a key can cause that, otherwise what a body may have. Then
nothing more is read, and the connection is closed once the client had time to read the answer.

Number of connections: bounded, below the limit on open files; idle ones are closed first.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler

from aggregator.errors import InputTooLarge
from aggregator.http.early_refusal import DELAY_S, EarlyRefusal, connection_refusal
from aggregator.http.forwarding import RequestFactory
from aggregator.http.middleware import errors
from aggregator.http.middleware.observability import SAFE_METHODS, SECURITY_HEADERS
from aggregator.http.middleware.rejected_log import RejectedConnectionLog

# Time without any acknowledged byte after which the kernel aborts the connection.
WRITE_STALL_TIMEOUT_S = 30.0


# Chunks of 6 bytes and more have less overhead than content; smaller ones fit into the constant.
OVERHEAD_FACTOR = 2
OVERHEAD_BYTES = 64 * 1024
# aiohttp stops reading from the socket once a body has twice this number of unread bytes.
READ_BUFFER_BYTES = 128 * 1024
MAX_BUFFERED_BYTES = 4 * READ_BUFFER_BYTES  # with the last packet
# Discarded of a body that any client can send without a key. Decoding chunks of one byte takes 0.2 s per MB.
DISCARDED_BYTES = 64 * 1024
# Refusals that do not depend on a body; a client without a key gets no others where keys are required.
STATUSES_WITHOUT_BODY = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.MISDIRECTED_REQUEST,
    }
)
UNREAD_BODY_TIMEOUT_S = 2.0  # a client that sends its whole body first can still read the answer
_TOO_MANY_CONNECTIONS = connection_refusal(SECURITY_HEADERS)


def limit_received_bytes(request: web.Request, max_bytes: int) -> None:
    """Set a new limit on the bytes that arrive for the body of ``request`` from now on: content and overhead.

    When they exceed it, reading the body raises InputTooLarge.
    """
    if isinstance(request.protocol, Connection):
        request.protocol.limit_received_bytes(max_bytes)


def first_byte_s(request: web.Request) -> float:
    """Time of the event loop at which the first byte of ``request`` was read from its connection."""
    if isinstance(request.protocol, Connection):
        return request.protocol.first_byte_s
    return asyncio.get_running_loop().time()


class Connection(RequestHandler):
    """One connection; closed without a response when headers take longer than ``header_timeout_s``.

    ``max_body_bytes``: limit on what arrives for a body of a route without a limit.
    """

    __slots__ = (
        "_body",
        "_body_bytes_left",
        "_early_refusal",
        "_has_begun",
        "_header_timeout_s",
        "_header_timer",
        "_max_body_bytes",
        "_rejected_log",
        "first_byte_s",
    )

    def __init__(
        self,
        *args: Any,
        header_timeout_s: float,
        max_body_bytes: int,
        rejected_log: RejectedConnectionLog,
        early_refusal: EarlyRefusal | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._early_refusal = early_refusal
        self._rejected_log = rejected_log
        self._header_timeout_s = header_timeout_s
        self._header_timer: asyncio.TimerHandle | None = None
        self._max_body_bytes = max_body_bytes
        self._body: StreamReader | None = None  # of the current or last request
        self._body_bytes_left = 0
        self._has_begun = False
        self.first_byte_s = 0.0  # of the current request; of a pipelined one: the end of the one before

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer for the first request's headers; refuse the connection if there are too many."""
        super().connection_made(transport)
        _set_write_stall_timeout(transport)
        self._start_timer()
        cast(ConnectionServer, self._manager).on_opened(self)

    def data_received(self, data: bytes) -> None:
        """Stop the timer when the headers are complete; start it when the next request begins."""
        was_waiting = self._is_awaiting_headers()
        if not self._has_begun:
            if self._refuse_early(data):
                return
            self._has_begun, self.first_byte_s = True, self._loop.time()
            cast(ConnectionServer, self._manager).on_busy(self)
        self._count_body_bytes(len(data))
        super().data_received(data)
        if not self._is_awaiting_headers():
            self._stop_timer()
        elif was_waiting and self._header_timer is None:
            self._start_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        if self._manager is not None:
            cast(ConnectionServer, self._manager).on_closed(self)
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

    async def _handle_request(self, request: web.BaseRequest, *args: Any) -> tuple[web.StreamResponse, bool]:
        self._body = request.content
        self.limit_received_bytes(self._max_body_bytes + MAX_BUFFERED_BYTES)
        try:
            response, reset = await super()._handle_request(request, *args)
            if response.status in STATUSES_WITHOUT_BODY or request.method in SAFE_METHODS:
                self._body_bytes_left = min(self._body_bytes_left, DISCARDED_BYTES)
            return response, reset
        finally:
            self._has_begun, self.first_byte_s = bool(self._messages), self._loop.time()
            if not self._has_begun and self._manager is not None:
                cast(ConnectionServer, self._manager).on_idle(self)

    def limit_received_bytes(self, max_bytes: int) -> None:
        """Set a new limit for the body of the current request; see the function of the same name."""
        self._body_bytes_left = OVERHEAD_FACTOR * max_bytes + OVERHEAD_BYTES

    def refuse(self, max_connections: int) -> None:
        """Close a new connection with 503, which is logged."""
        if self.transport is not None:
            peer = self.transport.get_extra_info("peername")
            self._rejected_log.log_surplus(peer[0] if isinstance(peer, tuple) else None, max_connections)
            self.transport.write(_TOO_MANY_CONNECTIONS)
        self.force_close()

    def _refuse_early(self, data: bytes) -> bool:
        """Answer a request that ``early_refusal`` refuses, after a delay during which nothing is read."""
        if self._early_refusal is None or self.transport is None:
            return False
        peer = self.transport.get_extra_info("peername")
        answer = self._early_refusal.answer(data, peer[0] if isinstance(peer, tuple) else "")
        if answer is None:
            return False
        self._stop_timer()
        self._pause_reading_for_buffer()
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        self._loop.call_later(DELAY_S, self._send_refusal, answer)
        return True

    def _send_refusal(self, answer: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(answer)
            self._resume_reading_for_buffer()

    def _count_body_bytes(self, size: int) -> None:
        if self._body is None or self._body.is_eof():  # the bytes belong to the next request
            return
        self._body_bytes_left -= size
        if self._body_bytes_left >= 0:
            return
        if self._current_request is None:  # answered already
            self._pause_reading_for_buffer()
            self._loop.call_later(UNREAD_BODY_TIMEOUT_S, self.force_close)
        elif self._body.exception() is None:
            self._lingering_time = 0  # closes the connection with the response instead of reading on
            self._pause_reading_for_buffer()
            self._body.set_exception(
                InputTooLarge(
                    "body: too many bytes were received for its content (compression, HTTP chunks); send "
                    "fewer and larger chunks, or split it.",
                    field="body",
                )
            )

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


class ConnectionServer(web.Server):
    """A ``web.Server`` whose connections are of the class Connection, at most ``max_connections``.

    A connection beyond that replaces the one that has been idle for longest, or is refused if none is idle;
    ``on_refused`` counts it.
    """

    def __init__(
        self,
        server: web.Server,
        max_connections: int,
        on_refused: Callable[[], None],
        **connection_options: Any,
    ) -> None:
        super().__init__(
            server.request_handler,
            request_factory=server.request_factory,
            handler_cancellation=server.handler_cancellation,
            **server._kwargs,
        )
        self._max_connections = max_connections
        self._on_refused = on_refused
        self._connection_options = {**connection_options, "rejected_log": RejectedConnectionLog()}
        self._open: set[Connection] = set()
        self._idle: dict[Connection, None] = {}  # between requests or before the first; longest first

    def __call__(self) -> RequestHandler:
        """The protocol instance for a new connection."""
        return Connection(self, loop=self._loop, **self._connection_options, **self._kwargs)

    def on_opened(self, connection: Connection) -> None:
        """Count a new connection, and close another one or this one if there are too many."""
        if len(self._open) >= self._max_connections:
            longest_idle = next(iter(self._idle), None)
            if longest_idle is None:
                connection.refuse(self._max_connections)
                self._on_refused()
                return
            self.on_closed(longest_idle)
            longest_idle.force_close()
        self._open.add(connection)
        self._idle[connection] = None

    def on_busy(self, connection: Connection) -> None:
        """A request begins."""
        self._idle.pop(connection, None)

    def on_idle(self, connection: Connection) -> None:
        """A response was sent."""
        if connection in self._open:
            self._idle[connection] = None

    def on_closed(self, connection: Connection) -> None:
        """Forget the connection. Idempotent."""
        self._open.discard(connection)
        self._idle.pop(connection, None)


class ConnectionRunner(web.AppRunner):
    """An ``AppRunner`` that serves through a ConnectionServer; options as there and of Connection.

    ``wrap_factory`` changes how requests are made of messages.
    """

    __slots__ = ("_connection_options", "_wrap_factory")

    def __init__(
        self,
        app: web.Application,
        connection_options: dict[str, Any],
        wrap_factory: Callable[[RequestFactory], RequestFactory] = lambda factory: factory,
        **kwargs: Any,
    ) -> None:
        super().__init__(app, **kwargs)
        self._connection_options = connection_options
        self._wrap_factory = wrap_factory

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        server.request_factory = self._wrap_factory(server.request_factory)
        return ConnectionServer(server, **self._connection_options)
