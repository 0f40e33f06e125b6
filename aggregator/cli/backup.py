"""``aggregator backup``: write a backup of the store while the service runs, or without it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aggregator.backup.creation import StoreSummary, create_backup, remove_old_backups, summarize_store
from aggregator.backup.manifest import Manifest
from aggregator.errors import ConfigurationError
from aggregator.index.upkeep import format_version
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.factory import with_running_store_url
from aggregator.store.redis import open_redis_store
from aggregator.time_units import wall_clock_ms


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Print the path of the backup. Raises ConfigurationError, StoreUnavailable."""
    if settings.in_memory:
        raise ConfigurationError("store: a memory store cannot be backed up; name the store of the service.")
    started_s = time.monotonic()
    directory = Path(args.directory)
    try:
        with _store_url(settings) as url:
            summary = run_loop(_summarize(url))
            backup, manifest = create_backup(url, directory, summary, wall_clock_ms())
        print(backup)
        print(f"{describe(manifest)}; {time.monotonic() - started_s:.1f} s.", file=sys.stderr)
        for removed in remove_old_backups(directory, args.keep) if args.keep else ():
            print(f"Deleted the older backup {removed}.", file=sys.stderr)
    except OSError as error:
        raise ConfigurationError(
            f"directory: {error.filename or directory} cannot be written ({error.strerror or error})."
        ) from error
    return EXIT_OK


def describe(manifest: Manifest) -> str:
    """One line on the content of a backup."""
    indexes = ", ".join(f"{index.name} {index.articles:,}" for index in manifest.indexes if index.articles)
    size = f"{manifest.snapshot.bytes / 1e6:,.1f} MB, {manifest.keys:,} keys"
    return (
        f"{size}, about {manifest.articles:,} articles{f' ({indexes})' if indexes else ''}, of "
        f"{manifest.created}, written by version {manifest.program} from {manifest.server}"
    )


@contextmanager
def _store_url(settings: Settings) -> Iterator[str]:
    """The URL of the store; an embedded one that is not running runs meanwhile."""
    located = with_running_store_url(settings).store_url
    if located:
        yield located
        return
    data_dir = Path(settings.data_dir)
    if not data_dir.is_dir():
        raise ConfigurationError(f"data_dir: {data_dir} does not exist, so there is nothing to back up.")
    with EmbeddedServer(data_dir, appendfsync=settings.appendfsync) as server:
        yield server.url


async def _summarize(url: str) -> StoreSummary:
    store = open_redis_store(url)
    try:
        await store.check()
        await format_version.check(store)
        return await summarize_store(store)
    finally:
        await store.close()
