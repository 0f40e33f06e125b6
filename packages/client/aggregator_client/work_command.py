"""``aggregator work``: consume articles from a Redis stream; a running service decides on them.

A plug-in of the server's command line (entry point group ``aggregator.commands``), which it imports.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from aggregator.cli import common_options
from aggregator.errors import EXIT_OK
from aggregator_client import errors

if TYPE_CHECKING:
    from aggregator.settings import Settings
    from aggregator_client.stream_group import StreamGroup

BATCH_DEADLINE_S = 20.0  # well below the idle time after which other workers claim the entries

log = logging.getLogger("aggregator.work")


def register(commands: Any) -> None:
    """Add the command; ``commands``: the subparsers of the command line."""
    command = common_options.add_command(
        commands, "work", "consume articles from a Redis stream and append verdicts to another",
        "aggregator_client.work_command:run", example="--redis redis://127.0.0.1:6379 --source articles",
    )  # fmt: skip
    command.add_argument(
        "--redis",
        metavar=common_options.URL_METAVAR,
        default="redis://127.0.0.1:6379",
        help="Redis server of the streams (default %(default)s)",
    )
    command.add_argument(
        "--server", metavar=common_options.URL_METAVAR, help="running service (default: the local one)"
    )
    command.add_argument(
        "--source",
        default="articles",
        metavar="STREAM",
        help="input stream; each entry has a field 'article' with JSON (default %(default)s)",
    )
    command.add_argument(
        "--verdicts", default="verdicts", metavar="STREAM", help="output stream (default %(default)s)"
    )
    command.add_argument(
        "--group", default="aggregator", metavar="NAME", help="consumer group (default %(default)s)"
    )
    command.add_argument(
        "--consumer",
        metavar="NAME",
        help="name of this worker, unique and the same after a restart (default: the host name)",
    )
    command.add_argument(
        "--maxlen", type=common_options.positive_int, metavar="N",
        help="keep about N verdicts and dead letters (default: 100000), and remove the processed entries of "
        "an input stream longer than N (default: keep them)",
    )  # fmt: skip
    command.add_argument(
        "--timezone", default="", metavar="ZONE", help="of dates without an offset, e.g. Europe/Berlin"
    )
    command.add_argument("--until-empty", action="store_true", help="exit when no entry is left")
    command.add_argument(
        "--dead-letters",
        choices=("list", "replay"),
        help="print the entries that could not be used, or return them to the input stream, and exit",
    )
    common_options.add_settings_options(command, common_options.LOG_SETTINGS)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Process entries until SIGTERM or SIGINT, or with ``--until-empty`` until none is left."""
    from aggregator.cli.ingest_targets import client_errors_translated
    from aggregator.runtime.event_loop import run_loop

    with client_errors_translated(""):
        return run_loop(_run(args, settings))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    import asyncio
    import socket

    from redis import asyncio as driver

    from aggregator.runtime.addresses import service_url
    from aggregator.runtime.event_loop import on_stop_signal
    from aggregator_client.client import Client
    from aggregator_client.stream_group import StreamGroup, StreamNames
    from aggregator_client.stream_worker import MAX_OUTPUT_ENTRIES, StreamWorker

    try:
        redis = driver.Redis.from_url(args.redis)
    except ValueError as error:
        raise errors.ConfigurationError(f"redis: {args.redis!r} is not a Redis URL ({error}).") from None
    url = args.server or service_url(settings.host, settings.port)
    streams = StreamNames(args.source, args.verdicts, args.group, args.consumer or socket.gethostname())
    if args.dead_letters:
        async with contextlib.aclosing(redis):
            await _dead_letters(StreamGroup(redis, streams, 0, MAX_OUTPUT_ENTRIES), args.dead_letters)
        return EXIT_OK
    async with (
        contextlib.aclosing(redis),
        Client(
            url,
            key=settings.key,
            on_failure="closed",
            batch_deadline_s=BATCH_DEADLINE_S,
            timezone=args.timezone,
        ) as client,
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


async def _dead_letters(group: StreamGroup, action: str) -> None:
    """Print the dead letters, or replay those that have an article and say how many."""
    import json

    from redis.exceptions import RedisError

    counts = [0, 0]
    try:
        async for letter in group.dead_letters():
            if action == "replay":
                counts[await group.replay(letter)] += 1
            else:
                fields = {name.decode("utf-8", "replace"): value for name, value in letter[1].items()}
                print(json.dumps({name: value.decode("utf-8", "replace") for name, value in fields.items()}))
    except (RedisError, OSError) as error:
        raise errors.Unavailable(f"The dead letters cannot be read ({error}).") from None
    if action == "replay":
        print(f"{counts[True]} dead letters put back, {counts[False]} without an article left.")
