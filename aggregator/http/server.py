"""Listening: one process serving the application until it is cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from aggregator.http.app import make_app

if TYPE_CHECKING:
    from aggregator.app import Service

SHUTDOWN_TIMEOUT_S = 10.0
KEEPALIVE_TIMEOUT_S = 75.0
# A batch is read in pieces of about twice this size: some fifty articles are looked up together.
READ_BUFFER_BYTES = 128 * 1024


def make_runner(app: web.Application) -> web.AppRunner:
    """The application with the connection options it relies on."""
    logging.getLogger("aiohttp.server").addFilter(_of_ours)
    return web.AppRunner(
        app,
        access_log=None,  # metrics and request ids say it; a line per article says it badly
        auto_decompress=False,  # bodies.py does it, within its limits
        handler_cancellation=False,  # a caller that hangs up must not leave half of a write
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        keepalive_timeout=KEEPALIVE_TIMEOUT_S,
        read_bufsize=READ_BUFFER_BYTES,
    )


def _of_ours(record: logging.LogRecord) -> bool:
    """Whether a log record tells of more than bytes that are not HTTP: those get their 400 and no traceback."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


async def serve(
    service: Service,
    host: str,
    port: int,
    *,
    reuse_port: bool = False,
    ready: Callable[[int], None] = lambda port: None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until ``stop`` is set or the task is cancelled; then finish what is under way within 10 s.

    ``ready`` is called once with the port that is listened on (port 0 takes a free one). Signals are
    the caller's. Raises OSError when the address cannot be had.
    """
    runner = make_runner(make_app(service))
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, reuse_port=reuse_port or None)
        await site.start()
        ready(runner.addresses[0][1])
        await (stop or asyncio.Event()).wait()
    finally:
        await runner.cleanup()
