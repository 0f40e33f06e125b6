"""The HTTP server of one process: listening, serving and graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import resource
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from aggregator.http.app import make_app
from aggregator.http.app_keys import LOAD_SHEDDER, METRICS, PEER_METRICS, SERVICE, SHUTTING_DOWN
from aggregator.http.connections import READ_BUFFER_BYTES, ConnectionRunner
from aggregator.http.early_refusal import EarlyRefusal
from aggregator.http.forwarding import wrap_factory
from aggregator.http.handlers.operations import render_metrics
from aggregator.http.listening import listen
from aggregator.http.metrics.multiprocess import SINGLE_PROCESS, PeerMetrics
from aggregator.http.middleware.observability import SECURITY_HEADERS

if TYPE_CHECKING:
    from aggregator.app import Service

# A shutdown drains, then waits for open requests while background work stops (``scheduler.STOP_TIMEOUT_S``):
# at most 10 s in total.
DRAIN_TIMEOUT_S = 1.0
SHUTDOWN_TIMEOUT_S = 5.0
MAX_CONNECTIONS = 4096
RESERVED_FILES = 192  # 32 or 64 listening handles, 64 connections to a store, pipes and files
_DRAIN_POLL_S = 0.02
KEEPALIVE_TIMEOUT_S = 75.0


def make_runner(app: web.Application) -> web.AppRunner:
    """A runner for the application with the connection options that it relies on."""
    settings = app[SERVICE].settings
    logging.getLogger("aiohttp.server").addFilter(_is_not_protocol_error)
    return ConnectionRunner(
        app,
        {
            "max_connections": max_connections(),
            "on_refused": app[METRICS].refused_connections.inc,
            "header_timeout_s": settings.header_timeout_seconds,
            "max_body_bytes": settings.max_body_bytes,
            # An early refusal is not in the access log.
            "early_refusal": None if settings.access_log else _make_early_refusal(app),
        },
        functools.partial(wrap_factory, settings=settings),
        access_log=None,  # metrics and ``observability`` cover it
        auto_decompress=False,  # ``body.py`` decompresses within its limits
        handler_cancellation=False,  # a disconnect must not interrupt a write
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        keepalive_timeout=KEEPALIVE_TIMEOUT_S,
        read_bufsize=READ_BUFFER_BYTES,
    )


def max_connections() -> int:
    """MAX_CONNECTIONS, or fewer if the limit on open files is low: the store and workers need some, too."""
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, max(16, soft_limit - RESERVED_FILES))


def _make_early_refusal(app: web.Application) -> EarlyRefusal:
    count_request = app[METRICS].requests.labels("POST", "/v1/articles", "503").inc
    count_article = app[METRICS].rejected_articles.labels("overloaded").inc

    def on_refused() -> None:
        count_request()
        count_article()

    return EarlyRefusal(app[LOAD_SHEDDER], SECURITY_HEADERS, on_refused)


def _is_not_protocol_error(record: logging.LogRecord) -> bool:
    """False for log records about malformed HTTP: it gets a 400, and ``rejected_log`` logs it."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


async def serve(
    service: Service,
    host: str,
    port: int,
    *,
    listener: socket.socket | None = None,
    on_ready: Callable[[int], None] = lambda port: None,
    stop: asyncio.Event | None = None,
    peer_metrics: PeerMetrics | None = None,
) -> None:
    """Serve until ``stop`` is set or the task is cancelled; then finish open requests within 10 s.

    listener      a bound socket to accept from, possibly shared by processes; replaces ``host`` and ``port``
    on_ready      called once with the port (port 0 selects a free one)
    peer_metrics  the other processes of this service
    Signal handling is the caller's task. Raises OSError when the address cannot be bound.
    """
    app = make_app(service)
    if peer_metrics is not None:
        app[PEER_METRICS] = peer_metrics
        if peer_metrics.name != SINGLE_PROCESS:
            app.cleanup_ctx.append(_serve_peer_metrics(peer_metrics))
    runner = make_runner(app)
    await runner.setup()
    assert runner.server is not None
    servers: list[asyncio.Server] = []
    try:
        servers += await listen(runner.server, host, port, listener=listener)
        on_ready(servers[0].sockets[0].getsockname()[1])
        await (stop or asyncio.Event()).wait()
        await _drain(app, runner, servers)
    finally:
        for server in servers:
            server.close()
        await runner.cleanup()


def _serve_peer_metrics(peer_metrics: PeerMetrics) -> Callable[[web.Application], AsyncIterator[None]]:
    async def context(app: web.Application) -> AsyncIterator[None]:
        server = await peer_metrics.listen(lambda: render_metrics(app))
        yield
        server.close()

    return context


async def _drain(app: web.Application, runner: web.AppRunner, servers: Sequence[asyncio.Server]) -> None:
    """Stop accepting, and close open connections with their next response.

    Closing an idle connection immediately would fail a request that its client is just sending. So the next
    response on each connection carries ``Connection: close``; after DRAIN_TIMEOUT_S the rest is idle or a
    stream.
    """
    app[SHUTTING_DOWN].set()
    for server in servers:
        server.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            while runner.server is not None and runner.server.connections:  # noqa: ASYNC110 (aiohttp has no event for it)
                await asyncio.sleep(_DRAIN_POLL_S)
