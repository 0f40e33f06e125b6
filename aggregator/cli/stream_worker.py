"""``aggregator work``: a consumer of a Redis stream of articles; the running service decides."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import socket

from redis import asyncio as driver

from aggregator.clients.client import Client
from aggregator.clients.stream_worker import StreamNames, StreamWorker
from aggregator.errors import ConfigurationError
from aggregator.runtime.addresses import service_url
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings

log = logging.getLogger("aggregator.work")


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Work until SIGTERM or SIGINT, or with ``--until-empty`` until nothing is left."""
    return run_loop(_run(args, settings))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    try:
        redis = driver.Redis.from_url(args.redis)
    except ValueError as error:
        raise ConfigurationError(f"redis: {args.redis!r} is not an address ({error}).") from None
    url = args.server or service_url(settings.host, settings.port)
    streams = StreamNames(args.source, args.verdicts, args.group, args.consumer or socket.gethostname())
    async with contextlib.aclosing(redis), Client(url, key=settings.key, on_failure="closed") as client:
        worker = StreamWorker(redis, client, streams)
        await (worker.drain() if args.until_empty else worker.run(_stop_on_signal()))
    log.info("%d entries settled, %d given up", worker.processed, worker.dead_lettered)
    return EXIT_OK


def _stop_on_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
