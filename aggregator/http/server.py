"""Listening: one process serving the application until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from aggregator.http.app import make_app
from aggregator.http.app_keys import PEER_METRICS, SERVICE, SHUTTING_DOWN
from aggregator.http.handlers.operations import render_metrics
from aggregator.http.metrics.multiprocess import SINGLE_PROCESS, PeerMetrics
from aggregator.http.middleware.timeouts import TimeoutRunner

if TYPE_CHECKING:
    from aggregator.app import Service

# Leaving takes at most: draining, then what is under way, and meanwhile the scheduled work (``jobs.DRAIN_S``): 10 s together.
DRAIN_TIMEOUT_S = 1.0
SHUTDOWN_TIMEOUT_S = 5.0
LISTEN_BACKLOG = 1024
_DRAIN_POLL_S = 0.02
KEEPALIVE_TIMEOUT_S = 75.0
# A batch is read in pieces of about twice this size: some fifty articles are looked up together.
READ_BUFFER_BYTES = 128 * 1024


def make_runner(app: web.Application) -> web.AppRunner:
    """The application with the connection options it relies on."""
    logging.getLogger("aiohttp.server").addFilter(_is_not_protocol_error)
    return TimeoutRunner(
        app,
        header_timeout_s=app[SERVICE].settings.header_timeout_seconds,
        access_log=None,  # metrics and request ids say it; a line per article says it badly
        auto_decompress=False,  # bodies.py does it, within its limits
        handler_cancellation=False,  # a caller that hangs up must not leave half of a write
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        keepalive_timeout=KEEPALIVE_TIMEOUT_S,
        read_bufsize=READ_BUFFER_BYTES,
    )


def _is_not_protocol_error(record: logging.LogRecord) -> bool:
    """Whether a log record tells of more than bytes that are not HTTP: those get their 400 and no traceback."""
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
    """Serve until ``stop`` is set or the task is cancelled; then finish what is under way within 10 s.

    ``listener``: a bound socket to accept from, which other processes may share, instead of ``host`` and
    ``port``. ``ready`` is called once with the port that is listened on (port 0 takes a free one). Signals are
    the caller's. ``siblings``: the other processes of this service. Raises OSError when the address cannot be had.
    """
    app = make_app(service)
    if peer_metrics is not None:
        app[PEER_METRICS] = peer_metrics
        if peer_metrics.name != SINGLE_PROCESS:
            app.cleanup_ctx.append(_serve_peer_metrics(peer_metrics))
    runner = make_runner(app)
    await runner.setup()
    site = (
        web.SockSite(runner, listener, backlog=LISTEN_BACKLOG)
        if listener is not None
        else web.TCPSite(runner, host, port, backlog=LISTEN_BACKLOG)
    )
    try:
        await site.start()
        on_ready(runner.addresses[0][1])
        await (stop or asyncio.Event()).wait()
        await _drain(app, runner, site)
    finally:
        await runner.cleanup()


def _serve_peer_metrics(peer_metrics: PeerMetrics) -> Callable[[web.Application], AsyncIterator[None]]:
    async def context(app: web.Application) -> AsyncIterator[None]:
        told = await peer_metrics.listen(lambda: render_metrics(app))
        yield
        told.close()

    return context


async def _drain(app: web.Application, runner: web.AppRunner, site: web.BaseSite) -> None:
    """Accept nothing more, and let every open connection end with an answer that says so.

    To close an idle connection is to fail the request that its caller is just sending. So each caller gets
    ``Connection: close`` with the next answer; after ``DRAIN_S`` what is left is idle, or a stream.
    """
    app[SHUTTING_DOWN].set()
    await site.stop()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            while runner.server is not None and runner.server.connections:  # noqa: ASYNC110 (it tells nobody)
                await asyncio.sleep(_DRAIN_POLL_S)
