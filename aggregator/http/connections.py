"""Connections: the private parts of aiohttp that this service overrides.

A connection refuses before the parser (``early_refusal.py``), and is closed when the headers of a request
take longer than ``HEADER_TIMEOUT_S``, from its start or from the first bytes after an answered request;
aiohttp limits only how long it may be idle.

The rest is left to aiohttp, which ``pyproject.toml`` pins (a test checks these parts), and to the proxy.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from aggregator.http import errors
from aggregator.http.early_refusal import DELAY_S, TOO_MANY_CONNECTIONS, ConnectionPool, refusal
from aggregator.http.proxies import wrap_factory

HEADER_TIMEOUT_S = 10.0  # for the header of a request to arrive


class Connection(RequestHandler):
    """One connection."""

    __slots__ = ("_has_begun", "_header_timer", "_pool")

    def __init__(self, server: web.Server, *, pool: ConnectionPool, **kwargs: Any) -> None:
        super().__init__(server, **kwargs)
        self._pool = pool
        self._header_timer: asyncio.TimerHandle | None = None
        self._has_begun = False  # bytes of a request that is not answered yet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer for the first request's headers; refuse the connection if there are too many."""
        super().connection_made(transport)
        self._start_timer()
        if not self._pool.admit(self) and self.transport is not None:
            self._pool.refusal_log.surplus(self._peer_address() or None, self._pool.most)
            self._pool.count_refused()
            self.transport.write(
                refusal(
                    TOO_MANY_CONNECTIONS,
                    {**errors.SECURITY_HEADERS, "Retry-After": "1", "Connection": "close"},
                )
            )
            self.force_close()

    def data_received(self, data: bytes) -> None:
        """Stop the timer when the headers are complete; start it when the next request begins."""
        if not self._has_begun:
            early = self._pool.early_refusal
            answer = early.answer(data, self._peer_address()) if early and early.shedder.may_be_full else None
            if answer is not None:
                self._answer_later(answer)
                return
            self._has_begun = True
            self._pool.idle.pop(self, None)
        super().data_received(data)
        if self._current_request is None and not self._messages:
            if self._header_timer is None:
                self._start_timer()
        elif self._header_timer is not None:
            self._stop_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Free the place of the connection."""
        self._stop_timer()
        self._pool.forget(self)
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
            self._pool.refusal_log.malformed(request.remote, status, exc)
        return errors.malformed_request_response(status, exc)

    async def _handle_request(self, request: web.BaseRequest, *args: Any) -> tuple[web.StreamResponse, bool]:
        try:
            return await super()._handle_request(request, *args)
        finally:
            self._has_begun = bool(self._messages)
            if not self._has_begun and self in self._pool.open:
                self._pool.idle[self] = None

    def _answer_later(self, answer: bytes) -> None:
        """Send ``answer`` after a delay during which nothing is read."""

        def send() -> None:
            if self.transport is not None and not self.transport.is_closing():
                self.transport.write(answer)
                self._resume_reading_for_buffer()

        self._stop_timer()
        self._pause_reading_for_buffer()
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        self._loop.call_later(DELAY_S, send)

    def _peer_address(self) -> str:
        return self.peername[0] if isinstance(self.peername, tuple) else ""

    def _start_timer(self) -> None:
        self._header_timer = self._loop.call_later(HEADER_TIMEOUT_S, self.force_close)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


class ConnectionServer(web.Server):
    """A ``web.Server`` of Connections."""

    def __call__(self) -> RequestHandler:
        """The protocol instance for a new connection."""
        return Connection(self, loop=self._loop, **self._kwargs)


class ConnectionRunner(web.AppRunner):
    """An ``AppRunner`` of a ConnectionServer."""

    def __init__(self, app: web.Application, *, pool: ConnectionPool, **kwargs: Any) -> None:
        super().__init__(app, pool=pool, **kwargs)
        self.pool = pool

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        factory = wrap_factory(made.request_factory, self.pool.settings)
        return ConnectionServer(made.request_handler, request_factory=factory, **made._kwargs)
