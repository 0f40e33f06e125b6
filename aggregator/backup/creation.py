"""Backup of a running store: its creation, complete or not there at all, its manifest and checksums."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from aggregator import __version__
from aggregator.errors import ConfigurationError
from aggregator.index.upkeep import format_version
from aggregator.index.upkeep.spaces import count_articles, registry_of
from aggregator.store.base import Store
from aggregator.store.disk import FileLock, flush_directory, write_flushed
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
        indexes.append(IndexSummary(name, entry.models_dir, found.articles))
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
        for left in directory.glob(f"{NAME_PREFIX}*{PARTIAL_SUFFIX}"):  # by interrupted runs
            shutil.rmtree(left, ignore_errors=True)
        if (free_bytes := shutil.disk_usage(directory).free) < summary.memory_bytes:
            raise ConfigurationError(
                f"directory: {directory} has {free_bytes / 1e6:,.0f} MB of free space; the backup may need "
                f"{summary.memory_bytes / 1e6:,.0f} MB, the memory that the store uses."
            )
        created = format_rfc3339(now_ms)
        backup = directory / (NAME_PREFIX + created[:19].replace("-", "").replace(":", "") + "Z")
        if backup.exists():
            raise ConfigurationError(f"directory: {backup} exists already; try again in a second.")
        partial = backup.with_name(backup.name + PARTIAL_SUFFIX)
        partial.mkdir(mode=0o700)
        try:
            dump = download_rdb(url, partial / SNAPSHOT_NAME)
            manifest = Manifest(
                FORMAT, created, __version__, summary.data_format, dump.server, summary.indexes,
                BackupFile(SNAPSHOT_NAME, dump.size_bytes, dump.sha256), dump.database, dump.keys,
                list(_copy_models(partial, summary.indexes)),
            )  # fmt: skip
            write_manifest(partial, manifest)
            flush_directory(partial)
            partial.rename(backup)
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # of a run that failed
        flush_directory(directory)
        return backup, manifest
    finally:
        lock.close(unlock=True)


def _copy_models(partial: Path, indexes: Sequence[IndexSummary]) -> Iterator[BackupFile]:
    """Copy the fitted models of the indexes; one that cannot be read (on another machine) is left out."""
    for number, models_dir in enumerate(sorted({index.models_dir for index in indexes} - {""})):
        target = partial / MODELS_NAME / str(number)
        target.mkdir(mode=0o700, parents=True)
        for path in sorted(Path(models_dir).glob("*.model")):
            try:
                content = path.read_bytes()
            except OSError as error:
                log.warning("%s is not part of the backup: %s", path, error.strerror)
                continue
            write_flushed(target / path.name, [content])
            name = str((target / path.name).relative_to(partial))
            yield BackupFile(name, len(content), hashlib.sha256(content).hexdigest())


def remove_old_backups(directory: Path, keep: int) -> list[Path]:
    """Delete all but the ``keep`` newest backups; those deleted. Raises OSError, as ``find_backups``."""
    old = find_backups(directory)[:-keep]
    for path in old:
        # Rename first: an interrupted deletion must not look like a backup.
        shutil.rmtree(path.rename(path.with_name(path.name + PARTIAL_SUFFIX)))
    return old


MANIFEST_NAME: Final = "manifest.json"
SNAPSHOT_NAME: Final = "store.rdb"
MODELS_NAME: Final = "models"
NAME_PREFIX: Final = "aggregator-"
PARTIAL_SUFFIX: Final = ".partial"
FORMAT: Final = 1
_BLOCK_BYTES = 1 << 20


class IndexSummary(msgspec.Struct, frozen=True):
    """An index, and about how many articles it has.

    ``models_dir``: the setting of the service that wrote it ("": the models of the package).
    """

    name: str
    models_dir: str
    articles: int


class BackupFile(msgspec.Struct, frozen=True):
    """The store's data, or a fitted feature model; ``name`` is its path in the backup."""

    name: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """``created``: when the snapshot was asked for; all that was acknowledged before is in it. RFC 3339.

    ``data_format``: of the stored values, see ``format_version.py``. ``keys``: about how many there are
    in ``database``, which is that of the URL.
    """

    format: int
    created: str
    program: str
    data_format: str
    server: str
    indexes: list[IndexSummary]
    snapshot: BackupFile
    database: int
    keys: int
    models: list[BackupFile] = []

    @property
    def created_ms(self) -> int:
        """``created``, in ms since 1970."""
        return round(datetime.fromisoformat(self.created).timestamp() * 1000)

    def compare_age(self, changed_ms: int) -> str:
        """How data last changed at this time compares with the backup, for messages."""
        newer = "newer than" if changed_ms > self.created_ms else "as old as, or older than,"
        return f"{format_rfc3339(changed_ms)}, {newer} the backup of {self.created}"


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write the manifest into a directory. Raises OSError."""
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    write_flushed(directory / MANIFEST_NAME, [encoded, b"\n"])


def read_manifest(backup: Path) -> Manifest:
    """The manifest of a backup. Raises ConfigurationError if there is none that this version reads."""
    path = backup / MANIFEST_NAME
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except OSError as error:
        raise ConfigurationError(f"backup: {path} cannot be read ({error.strerror}).") from None
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"backup: {path} is not the manifest of a backup ({error}).") from None
    if manifest.format != FORMAT:
        raise ConfigurationError(
            f"backup: {path} has format {manifest.format}; this version reads {FORMAT}; restore it with the "
            f"version that wrote it ({manifest.program})."
        )
    return manifest


def find_backups(directory: Path) -> list[Path]:
    """Complete backups, oldest first. Raises ConfigurationError if the newest has under half the articles."""
    found = sorted(path.parent for path in directory.glob(f"{NAME_PREFIX}*Z/{MANIFEST_NAME}"))
    articles = {path: sum(index.articles for index in read_manifest(path).indexes) for path in found}
    if larger := [path.name for path in found if articles[path] > 2 * articles[found[-1]]]:
        raise ConfigurationError(
            f"directory: {found[-1]} has about {articles[found[-1]]:,} articles, less than half of the "
            f"{max(articles.values()):,} of {', '.join(larger)}: was the store emptied or exchanged? Nothing "
            "is deleted or restored: restore one by its path or, if so few are right, delete the larger ones."
        )
    return found


def locate_backup(path: Path) -> Path:
    """``path`` if it is a backup, else the newest backup in it. Raises ConfigurationError."""
    if (path / MANIFEST_NAME).exists():
        return path
    if found := find_backups(path):
        return found[-1]
    raise ConfigurationError(f"backup: {path} neither is a backup nor contains one.")


def read_verified(backup: Path, file: BackupFile) -> Iterator[bytes]:
    """The content of a file in parts. Raises ConfigurationError at its end if it is not the one described."""
    path, hashed, size_bytes = backup / file.name, hashlib.sha256(), 0
    try:
        with open(path, "rb") as opened:
            while part := opened.read(_BLOCK_BYTES):
                hashed.update(part)
                size_bytes += len(part)
                yield part
    except OSError as error:
        raise ConfigurationError(f"backup: {path} cannot be read ({error.strerror}).") from None
    if (size_bytes, hashed.hexdigest()) != (file.bytes, file.sha256):
        raise ConfigurationError(
            f"backup: {path} has changed since it was written (SHA-256; it has {size_bytes:,} of "
            f"{file.bytes:,} bytes); use another backup."
        )
