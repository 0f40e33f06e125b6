"""The web application over a service, and the HTTP server of one process: serving and graceful shutdown.

uvloop (libuv since 1.45) accepts one connection per listening handle in each turn of the event loop, 50 ms
under load, so several duplicates of a listening socket listen: the last of 1,000 would wait for 50 s.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from aggregator.http.app_keys import (
    BASE_PATH,
    BATCH_LIMIT,
    BODY_MEMORY_BUDGET,
    LOAD_SHEDDER,
    METRICS,
    OPENAPI_DOCUMENT,
    PEER_METRICS,
    SERVICE,
    SHUTTING_DOWN,
    STREAM_LIMIT,
)  # fmt: skip
from aggregator.http.connections import ConnectionRunner
from aggregator.http.early_refusal import ConnectionPool
from aggregator.http.errors import REFUSAL_LOG, RefusalLog
from aggregator.http.handlers import feeds
from aggregator.http.handlers.event_views import EVENT_ITEMS, EventItemsCache
from aggregator.http.handlers.operations import render_metrics
from aggregator.http.limits import (
    BUDGET_BYTES,
    BodyMemoryBudget,
    LoadShedder,
    batch_limit,
    stream_limit,
)  # fmt: skip
from aggregator.http.metrics import Metrics
from aggregator.http.middleware import add_headers, process_request
from aggregator.http.openapi import build_document
from aggregator.http.pages import PAGES, Pages
from aggregator.http.peer_metrics import SINGLE_PROCESS, PeerMetrics
from aggregator.http.proxies import PROXY_USERS, ProxyUsers, base_path
from aggregator.http.routes import ENDPOINTS, add_routes

if TYPE_CHECKING:
    from aggregator.app import Service

# A shutdown drains, then waits for open requests while background work stops (``scheduler.STOP_TIMEOUT_S``):
# at most 10 s in total.
DRAIN_TIMEOUT_S = 1.0
SHUTDOWN_TIMEOUT_S = 5.0
MAX_CONNECTIONS = 4096
RESERVED_FILES = 192  # 32 or 64 listening handles, 64 connections to a store, pipes and files
_DRAIN_POLL_S = 0.02
BACKLOG = 1024
# 32 new connections hold others up for 2 ms; a single one costs 50 us more than with one handle.
ACCEPTS_PER_TURN = 32
KEEPALIVE_TIMEOUT_S = 75.0
# Of a body that was refused so much time is read and discarded: who sends it first can still read the answer.
LINGERING_S = 2.0
# aiohttp stops reading from the socket once a body has twice this number of unread bytes.
READ_BUFFER_BYTES = 128 * 1024

log = logging.getLogger("aggregator.serve")


def make_app(service: Service) -> web.Application:
    """The application over ``service``, which the caller opens and closes."""
    settings = service.settings
    prefix = base_path(settings)
    app = web.Application(middlewares=[process_request])
    app[SERVICE] = service
    app[METRICS] = Metrics(service.articles.policies.names)
    app[LOAD_SHEDDER] = LoadShedder(settings.max_inflight_articles)
    # One caller gets half of the budget, and a percent-encoded form has up to three times max_body_bytes.
    app[BODY_MEMORY_BUDGET] = BodyMemoryBudget(max(BUDGET_BYTES, 8 * settings.max_body_bytes))
    app[OPENAPI_DOCUMENT] = build_document(ENDPOINTS, prefix)
    app[STREAM_LIMIT], app[BATCH_LIMIT] = stream_limit(), batch_limit()
    app[PAGES] = Pages(prefix)
    app[EVENT_ITEMS] = EventItemsCache()
    app[BASE_PATH], app[PROXY_USERS] = prefix, ProxyUsers(settings, service.clock)
    app[REFUSAL_LOG] = RefusalLog()
    app[SHUTTING_DOWN] = asyncio.Event()
    app.on_response_prepare.append(add_headers)
    app.on_shutdown.append(feeds.close_streams)
    add_routes(app)
    return app


def make_runner(app: web.Application) -> ConnectionRunner:
    """A runner for the application with the connection options that it relies on."""
    logging.getLogger("aiohttp.server").addFilter(  # malformed HTTP gets a 400, and ``errors`` logs it
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
    )
    return ConnectionRunner(
        app,
        pool=ConnectionPool(app, max_connections()),
        access_log=None,  # metrics and ``middleware.py`` cover it
        auto_decompress=False,  # ``body.py`` decompresses within its limits
        handler_cancellation=False,  # a disconnect must not interrupt a write
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        keepalive_timeout=KEEPALIVE_TIMEOUT_S,
        lingering_time=LINGERING_S,
        read_bufsize=READ_BUFFER_BYTES,
    )


def max_connections() -> int:
    """MAX_CONNECTIONS, or fewer if the limit on open files is low: the store and workers need some, too."""
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, max(16, soft_limit - RESERVED_FILES))


async def serve(
    service: Service,
    listener: socket.socket,
    *,
    on_ready: Callable[[int], None] = lambda port: None,
    stop: asyncio.Event | None = None,
    peer_metrics: PeerMetrics | None = None,
) -> None:
    """Serve until ``stop`` is set or the task is cancelled; then finish open requests within 10 s.

    listener  a bound socket to accept from, possibly shared by processes
    on_ready  called once with its port
    Raises OSError when another process has come to listen on the address.
    """
    app = make_app(service)
    if peer_metrics is not None:
        app[PEER_METRICS] = peer_metrics
        if peer_metrics.name != SINGLE_PROCESS:
            app.cleanup_ctx.append(_serve_peer_metrics)
    runner = make_runner(app)
    await runner.setup()
    assert runner.server is not None
    servers: list[asyncio.Server] = []
    try:
        servers += await listen(runner.server, listener)
        on_ready(servers[0].sockets[0].getsockname()[1])
        await (stop or asyncio.Event()).wait()
        await _drain(app, runner, servers)
    finally:
        for server in servers:
            server.close()
        await runner.cleanup()


async def listen(
    protocol_factory: Callable[[], asyncio.BaseProtocol], listener: socket.socket
) -> list[asyncio.Server]:
    """Servers that accept from the bound socket ``listener``. Raises OSError."""
    loop = asyncio.get_running_loop()
    handles = [listener, *(listener.dup() for _ in range(ACCEPTS_PER_TURN - 1))]
    return [await loop.create_server(protocol_factory, sock=one, backlog=BACKLOG) for one in handles]


async def _serve_peer_metrics(app: web.Application) -> AsyncIterator[None]:
    server = await app[PEER_METRICS].listen(lambda: render_metrics(app))
    yield
    server.close()


async def _drain(app: web.Application, runner: ConnectionRunner, servers: Sequence[asyncio.Server]) -> None:
    """Stop accepting, and close open connections with their next response.

    Closing an idle connection immediately would fail a request that its client is just sending. So the next
    response on each connection carries ``Connection: close``; after DRAIN_TIMEOUT_S the rest is idle or a
    stream.
    """
    log.info("stopping; requests in work: %d", len(runner.pool.open) - len(runner.pool.idle))
    app[SHUTTING_DOWN].set()
    for server in servers:
        server.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            while runner.server is not None and runner.server.connections:  # noqa: ASYNC110 (aiohttp has no event for it)
                await asyncio.sleep(_DRAIN_POLL_S)
