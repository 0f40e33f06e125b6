"""``aggregator restore``: verify a backup, and make it the data of a store that no service uses."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from datetime import datetime
from pathlib import Path

from aggregator.backup.manifest import Manifest, locate_backup, read_manifest, read_verified
from aggregator.backup.restore import loaded, restore_directory, restore_server
from aggregator.cli.backup import describe
from aggregator.errors import ConfigurationError
from aggregator.index.upkeep.clock_guard import ACCEPT_COMMAND, MAX_AHEAD_MS
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings
from aggregator.store.durable_files import TemporaryDirectory
from aggregator.time_units import DAY_MS, wall_clock_ms


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Restore, or verify only with ``--check``. Raises ConfigurationError, StoreUnavailable."""
    if settings.in_memory:
        raise ConfigurationError(
            "store: a memory store ends with this command; name the store of the service."
        )
    if settings.store_url and args.data_dir is not None and args.store is None:
        raise ConfigurationError(
            "data_dir: store_url is set, too; say which one is meant with --store embedded or --store URL."
        )
    started_s = time.monotonic()
    backup = locate_backup(Path(args.backup))
    manifest = read_manifest(backup)
    print(f"Backup {backup}: {describe(manifest)}.", file=sys.stderr)
    for model in manifest.models:
        deque(read_verified(backup, model), maxlen=0)
    try:
        if args.check:
            with TemporaryDirectory() as directory, loaded(backup, manifest, directory / "data"):
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
        count = restore_server(
            backup, manifest, settings.store_url, replace=args.replace, on_progress=_report_progress
        )
        print(f"{count:,} keys are restored.")
    else:
        data_dir = Path(settings.data_dir)
        former = restore_directory(backup, manifest, data_dir, now_ms, replace=args.replace)
        print(f"{data_dir} is restored.")
        if former is not None:
            print(f"The former log is {former}; delete it when it is no longer needed.")
    for directory in sorted({(backup / model.name).parent for model in manifest.models}):
        print(f"Fitted models of the backup are in {directory}: models_dir must name them or the same ones.")
    _print_next_steps(manifest, now_ms)


def _print_next_steps(manifest: Manifest, now_ms: int) -> None:
    age_ms = now_ms - int(datetime.fromisoformat(manifest.created).timestamp() * 1000)
    if age_ms > MAX_AHEAD_MS:
        print(
            f"The backup is {age_ms / DAY_MS:.0f} days old: the service refuses to write until "
            f"{ACCEPT_COMMAND} confirms the clock of this machine."
        )
    print(
        "Next: `aggregator doctor --audit 200` under the settings of the service; then start the service and "
        f"let crawlers repeat what they sent since {manifest.created}. API keys that were revoked since then "
        "are valid again (`aggregator keys list`)."
    )


def _report_progress(keys: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{keys:,} keys", end="", file=sys.stderr, flush=True)
