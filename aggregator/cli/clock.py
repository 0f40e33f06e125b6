"""``aggregator clock``: show whether the clock of this machine fits the stored data, or declare it right."""

from __future__ import annotations

import argparse

from aggregator.app import open_service
from aggregator.cli.doctor_contents import describe_clock
from aggregator.errors import ConfigurationError
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import EXIT_OK, EXIT_UNAVAILABLE
from aggregator.settings import Settings
from aggregator.store.factory import with_running_store_url


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Print what is known of the clock; with ``--accept`` repair the store first. 3: the clock is wrong."""
    if settings.in_memory:
        raise ConfigurationError(
            "store: a memory store ends with its service; name the store of the service."
        )
    return run_loop(_run(args, with_running_store_url(settings)))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    async with open_service(settings) as service:
        guard = service.background.clock_guard
        if args.accept:
            await guard.accept()
        problem = await guard.observe()
        print(problem or describe_clock(guard))
        return EXIT_OK if problem is None else EXIT_UNAVAILABLE
