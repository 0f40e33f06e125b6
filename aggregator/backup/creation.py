"""Creates a backup of a running store: a snapshot and its manifest, complete or not there at all."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from aggregator import __version__
from aggregator.backup.manifest import (
    FORMAT,
    MODELS_NAME,
    NAME_PREFIX,
    PARTIAL_SUFFIX,
    SNAPSHOT_NAME,
    BackupFile,
    IndexSummary,
    Manifest,
    find_backups,
    remove_partial_backups,
    write_manifest,
)
from aggregator.errors import ConfigurationError
from aggregator.index.upkeep import format_version
from aggregator.index.upkeep.spaces import count_articles, registry_of
from aggregator.store.base import Store
from aggregator.store.durable_files import FileLock, flush_directory, write_flushed
from aggregator.store.rdb_dump import download_rdb
from aggregator.time_units import format_rfc3339

LOCK_NAME = ".lock"

log = logging.getLogger("aggregator.backup")


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """What a store contains, and how much memory it uses: more than its snapshot needs on disk."""

    data_format: str
    indexes: list[IndexSummary]
    memory_bytes: int


async def summarize_store(store: Store) -> StoreSummary:
    """Read the summary; about 0.1 s per index. Raises StoreUnavailable."""
    raw = (await store.read([format_version.FORMAT_KEY]))[0]
    indexes = []
    for name, entry in sorted((await registry_of(store).read()).items()):
        found = await count_articles(store, name, entry)
        indexes.append(
            IndexSummary(
                name, entry.model, entry.recipe, entry.plan, entry.models_dir, found.articles,
                format_rfc3339(found.oldest_ms) if found.articles else "",
                format_rfc3339(found.newest_ms) if found.articles else "",
            )
        )  # fmt: skip
    return StoreSummary(raw.decode() if raw else "", indexes, (await store.info()).memory_bytes)


def create_backup(url: str, directory: Path, summary: StoreSummary, now_ms: int) -> tuple[Path, Manifest]:
    """Write a backup of the server at ``url`` into ``directory``; its path and manifest. Blocks.

    A run that is interrupted leaves at most a directory with the suffix ``.partial``, which the next run
    deletes. Raises StoreUnavailable, ConfigurationError (another run, too little space), OSError.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(directory / LOCK_NAME)
    try:
        if not lock.try_lock():
            raise ConfigurationError(f"directory: another backup into {directory} is running.")
        remove_partial_backups(directory)
        _check_space(directory, summary.memory_bytes)
        created = format_rfc3339(now_ms)
        backup = directory / (NAME_PREFIX + created[:19].replace("-", "").replace(":", "") + "Z")
        if backup.exists():
            raise ConfigurationError(f"directory: {backup} exists already; try again in a second.")
        partial = backup.with_name(backup.name + PARTIAL_SUFFIX)
        partial.mkdir(mode=0o700)
        try:
            manifest = _fill(partial, url, summary, created)
            flush_directory(partial)
            partial.rename(backup)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        flush_directory(directory)
        return backup, manifest
    finally:
        lock.close(unlock=True)


def _fill(partial: Path, url: str, summary: StoreSummary, created: str) -> Manifest:
    dump = download_rdb(url, partial / SNAPSHOT_NAME)
    manifest = Manifest(
        FORMAT, created, __version__, summary.data_format, dump.server, summary.indexes,
        BackupFile(SNAPSHOT_NAME, dump.size_bytes, dump.sha256), dump.database, dump.keys,
        list(_copy_models(partial, summary.indexes)),
    )  # fmt: skip
    write_manifest(partial, manifest)
    return manifest


def _copy_models(partial: Path, indexes: Sequence[IndexSummary]) -> Iterator[BackupFile]:
    """Copy the fitted models of the indexes, without which their articles cannot be read.

    A directory that cannot be read from here is left out: the service may run on another machine.
    """
    for number, models_dir in enumerate(sorted({index.models_dir for index in indexes} - {""})):
        target = partial / MODELS_NAME / str(number)
        target.mkdir(mode=0o700, parents=True)
        for path in sorted(Path(models_dir).glob("*.model")):
            try:
                content = path.read_bytes()
            except OSError as error:
                log.warning("%s is not part of the backup: %s", path, error.strerror)
                continue
            write_flushed(target / path.name, content)
            name = str((target / path.name).relative_to(partial))
            yield BackupFile(name, len(content), hashlib.sha256(content).hexdigest())


def _check_space(directory: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(directory).free
    if free_bytes < needed_bytes:
        raise ConfigurationError(
            f"directory: {directory} has {free_bytes / 1e6:,.0f} MB of free space; the backup may need "
            f"{needed_bytes / 1e6:,.0f} MB, the memory that the store uses."
        )


def remove_old_backups(directory: Path, keep: int) -> list[Path]:
    """Delete all but the ``keep`` newest backups; those that were deleted. Raises OSError."""
    old = find_backups(directory)[:-keep]
    for path in old:
        # Rename first: an interrupted deletion must not look like a backup.
        partial = path.rename(path.with_name(path.name + PARTIAL_SUFFIX))
        shutil.rmtree(partial)
    return old
