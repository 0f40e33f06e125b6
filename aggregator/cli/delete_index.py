"""``aggregator delete-index``: delete an index that the settings do not read, with its articles."""

from __future__ import annotations

import argparse
import sys

from aggregator.app import Service, open_service
from aggregator.errors import ConfigurationError
from aggregator.index.upkeep.spaces import StoredSpace, count_articles, delete_space, registry_of
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import EXIT_OK, EXIT_PARTIAL_FAILURE
from aggregator.settings import Settings
from aggregator.store.factory import with_running_store_url
from aggregator.time_units import format_minute


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Exit code 1 if the user does not confirm. Raises ConfigurationError for an index that is in use."""
    return run_loop(_run(args, with_running_store_url(settings)))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    async with open_service(settings) as service:
        registry = await registry_of(service.store).read()
        _check_name(args.index, service, registry)
        found = await count_articles(service.store, args.index, registry[args.index])
        span = f", arrived {format_minute(found.oldest_ms)} to {format_minute(found.newest_ms)} UTC"
        question = f"{args.index}: about {found.articles} articles{span if found.articles else ''}."
        if not args.yes and not _confirm(question, args.index):
            print("Nothing was deleted.", file=sys.stderr)
            return EXIT_PARTIAL_FAILURE
        deleted = await delete_space(service.store, args.index)
        print(f"{args.index} is deleted ({deleted} keys).", file=sys.stderr)
    return EXIT_OK


def _check_name(space: str, service: Service, registry: dict[str, StoredSpace]) -> None:
    if space in service.index.all_spaces:
        raise ConfigurationError(
            f"index: {space} is in use by these settings; only other indexes are deleted."
        )
    if space not in registry:
        others = sorted(registry.keys() - set(service.index.all_spaces))
        stored = f"those not in use are {', '.join(others)}" if others else "every index is in use"
        raise ConfigurationError(f"index: the store holds no index {space}; {stored}.")


def _confirm(question: str, name: str) -> bool:
    try:
        return input(f"{question} Type {name} to delete them: ").strip() == name
    except EOFError:
        return False
