"""``aggregator follow``: poll feeds into a running service.

A plug-in of the server's command line (entry point group ``aggregator.commands``), which it imports.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.cli import common_options
from aggregator.errors import EXIT_OK, EXIT_PARTIAL_FAILURE, ConfigurationError
from aggregator.time_units import MINUTE_MS
from aggregator_client.feed_ids import is_address

if TYPE_CHECKING:
    from aggregator.settings import Settings

READY_DEADLINE_S = 5.0


def register(commands: Any) -> None:
    """Add the command; ``commands``: the subparsers of the command line."""
    command = common_options.add_command(
        commands, "follow", "poll RSS, Atom and JSON feeds and post their items to a running service",
        "aggregator_client.follow_command:run", example="https://gazette.example/rss subscriptions.opml",
    )  # fmt: skip
    command.add_argument(
        "feeds", nargs="+", metavar="FEED|OPML", help="address or file of a feed, or of an OPML list of feeds"
    )
    command.add_argument(
        "--every", metavar="SPAN", type=common_options.duration_ms, default=15 * MINUTE_MS,
        help="time between two polls of a feed, e.g. 5m (default 15m); one that fails is polled less often",
    )  # fmt: skip
    command.add_argument("--once", action="store_true", help="poll each feed once and exit")
    command.add_argument(
        "--server", metavar=common_options.URL_METAVAR, help="running service (default: the local one)"
    )
    common_options.add_settings_options(command, common_options.LOG_SETTINGS)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Follow the feeds until SIGTERM or SIGINT; with ``--once`` 1 is returned if a feed could not be read."""
    from aggregator.cli.ingest_targets import client_errors_translated
    from aggregator.runtime.event_loop import run_loop

    for location in args.feeds:
        if not is_address(location) and not Path(location).is_file():
            raise ConfigurationError(f"{location!r} is neither a file nor an http:// or https:// address.")
    with client_errors_translated():
        return run_loop(_run(args, settings))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    import asyncio

    from aggregator.runtime.addresses import service_url
    from aggregator.runtime.event_loop import on_stop_signal
    from aggregator_client.client import Client
    from aggregator_client.feed_fetch import Fetcher
    from aggregator_client.feed_follow import Follower

    url = args.server or service_url(settings.host, settings.port)
    async with (
        Client(url, key=settings.key, on_failure="closed", deadline_s=READY_DEADLINE_S) as client,
        Fetcher() as fetcher,
    ):
        follower = Follower(
            client, fetcher, args.feeds, interval_s=args.every / 1000, write=partial(print, flush=True)
        )
        if args.once:
            counts = await follower.poll_round()
            return EXIT_PARTIAL_FAILURE if counts["failed"] + counts["gone"] + counts["broken"] else EXIT_OK
        stop = asyncio.Event()
        on_stop_signal(stop.set)
        await follower.run(stop)
    return EXIT_OK
