"""Restores a backup as the data directory of an embedded store.

The backup is verified and loaded in a subdirectory first. Only then the log of the data directory is
replaced; the former one is kept under another name. An interruption leaves the former data, or a directory
that the service refuses to start on until the command is repeated (``append_log.py``), or the new data.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from aggregator.backup.loading import loaded, remove_directory
from aggregator.backup.manifest import Manifest
from aggregator.errors import ConfigurationError
from aggregator.index import format_version
from aggregator.store.append_log import EMPTY_LOG_BYTES, LOG_DIRECTORY, RECORD_NAME
from aggregator.store.durable_files import exclude_service, flush_directory
from aggregator.store.redis import open_redis_store
from aggregator.store.server_commands import rewrite_log
from aggregator.time_units import format_rfc3339

PARTIAL_NAME = "restore.partial"
FORMER_LOG_PREFIX = f"{LOG_DIRECTORY}.before-"


def restore_directory(
    backup: Path, manifest: Manifest, data_dir: Path, now_ms: int, *, replace: bool
) -> Path | None:
    """Replace the data of ``data_dir`` by the backup; the former log, None if there was none. Blocks.

    Raises ConfigurationError if the directory is in use, or holds data and ``replace`` is False, or if the
    backup is damaged or of a format that this version does not read; OSError.
    """
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with exclude_service(data_dir):
        log, partial = data_dir / LOG_DIRECTORY, data_dir / PARTIAL_NAME
        if not replace and (written_ms := last_written_ms(log)) is not None:
            raise ConfigurationError(_refusal(data_dir, written_ms, manifest))
        remove_directory(partial)
        with loaded(backup, manifest, partial) as server:
            asyncio.run(_check_format(server.url))
            rewrite_log(server.url)
        former = None
        if log.exists():
            former = data_dir / f"{FORMER_LOG_PREFIX}{format_rfc3339(now_ms)[:19].replace(':', '')}Z"
            log.rename(former)
        # Until the last step the record of checksums is that of the former log: no service starts in between.
        (partial / LOG_DIRECTORY).rename(log)
        (partial / RECORD_NAME).replace(data_dir / RECORD_NAME)
        flush_directory(data_dir)
        remove_directory(partial)
        return former


def last_written_ms(log: Path) -> int | None:
    """When a log was last written to; None if it holds no data."""
    states = [path.stat() for path in log.glob("*")] if log.is_dir() else []
    if sum(state.st_size for state in states) <= EMPTY_LOG_BYTES:
        return None
    return max(state.st_mtime_ns for state in states) // 1_000_000


def _refusal(data_dir: Path, written_ms: int, manifest: Manifest) -> str:
    age = manifest.compare_age(format_rfc3339(written_ms))
    return (
        f"data_dir: {data_dir} holds data, last written {age}; "
        "choose an empty directory, or replace the data with --replace (the former log is kept)."
    )


async def _check_format(url: str) -> None:
    store = open_redis_store(url)
    try:
        await store.check()
        await format_version.check(store)
    finally:
        await store.close()
