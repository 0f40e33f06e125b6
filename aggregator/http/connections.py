"""Connections: the private parts of aiohttp that this service overrides.

* Overload: an article of a caller without a free slot is answered before the parser (``EarlyRefusal``).
* Number of connections: bounded, below the limit on open files; idle ones are closed first.
* Header timeout: a connection is closed when the headers of a request take longer, from its start or from the
  first bytes after an answered request; aiohttp limits only how long it may be idle.

The rest is left to aiohttp, which ``pyproject.toml`` pins (a test checks these parts), and to the proxy.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from aggregator.auth.api_keys import parse_key_id
from aggregator.contract.problems import to_problem
from aggregator.contract.responses import encode
from aggregator.errors import Overloaded
from aggregator.http import errors
from aggregator.http.app_keys import LOAD_SHEDDER, METRICS, SERVICE
from aggregator.http.limits import LoadShedder
from aggregator.http.proxies import wrap_factory

HEADER_TIMEOUT_S = 10.0  # for the header of a request to arrive
TOO_MANY_CONNECTIONS = "This server has too many open connections; retry later, over fewer connections."
TOO_MANY_ARTICLES = (
    "As many articles of this caller are in flight here as can be answered in time (setting "
    "max_inflight_articles); retry later, or send many articles in one batch."
)
# The answer is held back, so that a client that repeats at once sends few requests.
DELAY_S = 0.1
RETRY_AFTER_S = (1, 2, 3)  # chosen at random, so that refused clients do not return together
MAX_HEAD_BYTES = 4096

_REQUEST_LINE = re.compile(rb"POST (/v1/articles)(?:\?[!-~]{0,100})? HTTP/1\.1\r\n")
_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*(?=\r\n)", re.IGNORECASE)
_UNUSUAL = re.compile(
    rb"\r\n(?:(?:transfer-encoding|expect|upgrade|cookie)[ \t]*:|connection[ \t]*:(?![ \t]*keep-alive\r\n))",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    rb"\r\nauthorization:[ \t]*bearer[ \t]+([!-~]{1,300})[ \t]*(?=\r\n)", re.IGNORECASE
)
_ANY_AUTHORIZATION = re.compile(rb"\r\nauthorization[ \t]*:", re.IGNORECASE)


class EarlyRefusal:
    """Refusals before the parser. ``headers``: those of every response; ``counts`` count one.

    Under overload most requests are refused, and refusing them takes the processor time that the admitted
    ones need, in parser, task, middlewares and response. Here the decision takes about 8 us. Only a request
    that has arrived completely in one piece, to POST /v1/articles, is recognized; every other one, and every
    caller with a free slot, takes the usual way. The key is not verified: a wrong one holds no slots, so its
    caller is not refused here but gets 401 as usual.
    """

    def __init__(self, shedder: LoadShedder, headers: dict[str, str], *counts: Callable[[], None]) -> None:
        self.shedder = shedder
        self._counts = counts
        sent = {**headers, "Cache-Control": "no-store"}
        self._answers = [
            _refusal(TOO_MANY_ARTICLES, {**sent, "Retry-After": str(seconds)}, "/v1/articles")
            for seconds in RETRY_AFTER_S
        ]

    def answer(self, data: bytes, peer: str) -> bytes | None:
        """The response to the request that ``data`` is, or None if it is not to be refused here."""
        if not self.shedder.may_be_full or not data.startswith(b"POST /v1/articles"):
            return None
        end = data.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES) + 2
        head = data[:end]
        lengths = _CONTENT_LENGTH.findall(head)
        if end < 2 or len(lengths) != 1 or len(data) != end + 2 + int(lengths[0]):
            return None
        if not _REQUEST_LINE.match(head) or _UNUSUAL.search(head):
            return None
        keys = _AUTHORIZATION.findall(head)
        if len(keys) != len(_ANY_AUTHORIZATION.findall(head)) or len(keys) > 1:
            return None
        if not self.shedder.is_full_for(parse_key_id(keys[0].decode()) if keys else peer):
            return None
        for count in self._counts:
            count()
        return random.choice(self._answers)


def _refusal(message: str, headers: dict[str, str], instance: str = "") -> bytes:
    """A whole 503 response with a problem as its body."""
    problem = to_problem(Overloaded(message))
    problem.instance = instance or problem.instance
    body = encode(problem) + b"\n"
    lines = [
        "HTTP/1.1 503 Service Unavailable",
        "Content-Type: application/problem+json",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class ConnectionPool:
    """The connections of a server, at most ``most`` open ones.

    ``idle``: between requests or before the first, longest first. ``early_refusal`` None: requests are
    refused after parsing only, since an early refusal is not in the access log.
    """

    def __init__(self, app: web.Application, most: int) -> None:
        self.settings, self.most = app[SERVICE].settings, most
        self.refusal_log, metrics = app[errors.REFUSAL_LOG], app[METRICS]
        self.count_refused = metrics.refused_connections.inc
        self.early_refusal: EarlyRefusal | None = None
        if not self.settings.access_log:
            self.early_refusal = EarlyRefusal(
                app[LOAD_SHEDDER],
                errors.SECURITY_HEADERS,
                metrics.requests.labels("POST", "/v1/articles", "503").inc,
                metrics.rejected_articles.labels("overloaded").inc,
            )
        self.idle: dict[RequestHandler, None] = {}
        self.open: set[RequestHandler] = set()

    def admit(self, connection: RequestHandler) -> bool:
        """Count a new connection, which replaces the one idle for longest; False if there is no place."""
        if len(self.open) >= self.most:
            longest_idle = next(iter(self.idle), None)
            if longest_idle is None:
                return False
            self.forget(longest_idle)
            longest_idle.force_close()
        self.open.add(connection)
        self.idle[connection] = None
        return True

    def set_idle(self, connection: RequestHandler) -> None:
        """A response was sent."""
        if connection in self.open:
            self.idle[connection] = None

    def forget(self, connection: RequestHandler) -> None:
        """The connection is closed. Idempotent."""
        self.open.discard(connection)
        self.idle.pop(connection, None)


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
                _refusal(
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
            if not self._has_begun:
                self._pool.set_idle(self)

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
    """An ``AppRunner`` of a ConnectionServer; ``pool``: ConnectionPool."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        factory = wrap_factory(made.request_factory, self._kwargs["pool"].settings)
        return ConnectionServer(made.request_handler, request_factory=factory, **made._kwargs)
