"""``aggregator backup`` and ``aggregator restore``: write a backup of a store, and read one back."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aggregator.background.tasks import last_backup
from aggregator.backup.creation import (
    Manifest,
    StoreSummary,
    create_backup,
    locate_backup,
    read_manifest,
    read_verified,
    remove_old_backups,
    summarize_store,
)
from aggregator.backup.restore import loaded, restore_directory, restore_server
from aggregator.errors import EXIT_OK, ConfigurationError, StoreUnavailable
from aggregator.index.upkeep import format_version
from aggregator.index.upkeep.clock_guard import ACCEPT_COMMAND, MAX_AHEAD_MS
from aggregator.runtime.event_loop import run_loop
from aggregator.settings import Settings
from aggregator.store.address import parse_address
from aggregator.store.disk import temporary_directory
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.factory import checked_store, with_running_store_url
from aggregator.store.identity import remembered_ids
from aggregator.time_units import DAY_MS, wall_clock_ms


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Print the path of the backup. Raises ConfigurationError, StoreUnavailable."""
    started_s = time.monotonic()
    directory = Path(args.directory)
    try:
        with _store_url(settings) as url:
            summary = run_loop(_summarize(url))
            backup, manifest = create_backup(url, directory, summary, now_ms := wall_clock_ms())
            print(backup)
            run_loop(_record(url, now_ms))
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
    articles = sum(index.articles for index in manifest.indexes)
    size = f"{manifest.snapshot.bytes / 1e6:,.1f} MB, {manifest.keys:,} keys"
    return (
        f"{size}, about {articles:,} articles{f' ({indexes})' if indexes else ''}, of "
        f"{manifest.created}, written by version {manifest.program} from {manifest.server}"
    )


@contextmanager
def _store_url(settings: Settings) -> Iterator[str]:
    """The URL of the store; an embedded one that is not running runs meanwhile."""
    located = with_running_store_url(settings, creates=False).store_url
    if located:
        yield located
        return
    with EmbeddedServer(Path(settings.data_dir), appendfsync=settings.appendfsync) as server:
        yield server.url


async def _summarize(url: str) -> StoreSummary:
    async with checked_store(url, format_version.check) as store:
        return await summarize_store(store)


async def _record(url: str, made_ms: int) -> None:
    try:
        async with checked_store(url, format_version.check) as store:
            await last_backup(store).edit(lambda _: made_ms)
    except StoreUnavailable as error:
        print(f"The backup is complete, but alerts do not know its time: {error}", file=sys.stderr)


def restore(args: argparse.Namespace, settings: Settings) -> int:
    """Restore, or verify only with ``--check``. Raises ConfigurationError, StoreUnavailable."""
    started_s = time.monotonic()
    backup = locate_backup(Path(args.backup))
    manifest = read_manifest(backup)
    print(f"Backup {backup}: {describe(manifest)}.", file=sys.stderr)
    for model in manifest.models:
        deque(read_verified(backup, model), maxlen=0)
    try:
        if not args.opens_store:
            with temporary_directory() as directory, loaded(backup, manifest, directory / "data") as server:
                run_loop(_summarize(server.url))  # refuses a format that this version does not read
                print("Its checksum is right, and it can be loaded with all its keys.")
        else:
            _restore(args, settings, backup, manifest)
    except OSError as error:
        raise ConfigurationError(
            f"restore: {error.filename or settings.data_dir} cannot be written ({error.strerror or error})."
        ) from error
    print(f"{time.monotonic() - started_s:.1f} s.", file=sys.stderr)
    return EXIT_OK


def _restore(args: argparse.Namespace, settings: Settings, backup: Path, manifest: Manifest) -> None:
    now_ms = wall_clock_ms()
    if settings.store_url:
        known = remembered_ids(Path(settings.data_dir))
        count = restore_server(backup, manifest, settings.store_url, replace=args.replace, known=known)
        prefix = parse_address(settings.store_url).prefix.decode()
        restored = f"prefix {prefix} {count:,} of {manifest.keys:,}" if prefix else f"{count:,}"
        print(f"{restored} keys are restored.")
    else:
        data_dir = Path(settings.data_dir)
        former = restore_directory(backup, manifest, data_dir, now_ms, replace=args.replace)
        print(f"{data_dir} is restored.")
        if former is not None:
            print(f"The former log is {former}; delete it when it is no longer needed.")
    for directory in sorted({(backup / model.name).parent for model in manifest.models}):
        print(f"Fitted models of the backup are in {directory}: models_dir must name them or the same ones.")
    age_ms = now_ms - manifest.created_ms
    if age_ms > MAX_AHEAD_MS:
        print(
            f"The backup is {age_ms / DAY_MS:.0f} days old: the service refuses to write until "
            f"{ACCEPT_COMMAND} confirms the clock of this machine."
        )
    print(
        "Next: `aggregator doctor --audit` under the settings of the service; then start the service and "
        f"let crawlers repeat what they sent since {manifest.created}. API keys created since then are gone, "
        "those revoked are valid again (`aggregator keys list`), and sources distrusted are trusted again "
        "(`aggregator audit SOURCE --distrust`)."
    )
