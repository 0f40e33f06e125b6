"""``aggregator work``: consume articles from a Redis stream; a running service decides on them."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import socket

from redis import asyncio as driver

from aggregator.clients.client import Client
from aggregator.clients.stream_group import StreamNames
from aggregator.clients.stream_worker import MAX_OUTPUT_ENTRIES, StreamWorker
from aggregator.errors import ConfigurationError
from aggregator.runtime.addresses import service_url
from aggregator.runtime.event_loop import on_stop_signal, run_loop
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings

BATCH_DEADLINE_S = 20.0  # well below the idle time after which other workers claim the entries

log = logging.getLogger("aggregator.work")


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Process entries until SIGTERM or SIGINT, or with ``--until-empty`` until none is left."""
    return run_loop(_run(args, settings))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    try:
        redis = driver.Redis.from_url(args.redis)
    except ValueError as error:
        raise ConfigurationError(f"redis: {args.redis!r} is not a Redis URL ({error}).") from None
    url = args.server or service_url(settings.host, settings.port)
    streams = StreamNames(args.source, args.verdicts, args.group, args.consumer or socket.gethostname())
    async with (
        contextlib.aclosing(redis),
        Client(url, key=settings.key, on_failure="closed", batch_deadline_s=BATCH_DEADLINE_S) as client,
    ):
        worker = StreamWorker(
            redis,
            client,
            streams,
            maxlen=args.maxlen or MAX_OUTPUT_ENTRIES,
            trim_source=args.maxlen is not None,
        )
        if args.until_empty:
            await worker.drain()
        else:
            stop = asyncio.Event()
            on_stop_signal(stop.set)
            await worker.run(stop)
    log.info("%s", worker.summary())
    return EXIT_OK
