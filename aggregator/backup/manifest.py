"""Manifest of a backup: what it contains, and the checksums that it is verified with."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from aggregator.errors import ConfigurationError
from aggregator.store.durable_files import write_flushed

MANIFEST_NAME: Final = "manifest.json"
SNAPSHOT_NAME: Final = "store.rdb"
MODELS_NAME: Final = "models"
NAME_PREFIX: Final = "aggregator-"
PARTIAL_SUFFIX: Final = ".partial"
FORMAT: Final = 1
_BLOCK_BYTES = 1 << 20


class IndexSummary(msgspec.Struct, frozen=True):
    """An index: the model, recipe and block plan that read it, and about how many articles it has.

    ``models_dir``: the setting of the service that wrote it ("": the models of the package). Times: RFC 3339.
    """

    name: str
    model: str
    recipe: str
    plan: str
    models_dir: str
    articles: int
    oldest: str
    newest: str


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
    def articles(self) -> int:
        """About how many articles all indexes have."""
        return sum(index.articles for index in self.indexes)

    def compare_age(self, used: str) -> str:
        """How data last used at this time (RFC 3339) compares with the backup, for messages."""
        newer = "newer than" if used[:19] > self.created[:19] else "as old as, or older than,"
        return f"{used}, {newer} the backup of {self.created}"


_decoder = msgspec.json.Decoder(Manifest)


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write the manifest into a directory. Raises OSError."""
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    write_flushed(directory / MANIFEST_NAME, encoded + b"\n")


def read_manifest(backup: Path) -> Manifest:
    """The manifest of a backup. Raises ConfigurationError if there is none that this version reads."""
    path = backup / MANIFEST_NAME
    try:
        manifest = _decoder.decode(path.read_bytes())
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
    """The complete backups in a directory, oldest first."""
    return sorted(path.parent for path in directory.glob(f"{NAME_PREFIX}*Z/{MANIFEST_NAME}"))


def locate_backup(path: Path) -> Path:
    """``path`` if it is a backup, else the newest backup in it. Raises ConfigurationError."""
    if (path / MANIFEST_NAME).exists():
        return path
    if found := find_backups(path):
        return found[-1]
    raise ConfigurationError(f"backup: {path} neither is a backup nor contains one.")


def remove_partial_backups(directory: Path) -> None:
    """Delete what interrupted runs left."""
    for path in directory.glob(f"{NAME_PREFIX}*{PARTIAL_SUFFIX}"):
        shutil.rmtree(path, ignore_errors=True)


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
    if size_bytes != file.bytes:
        raise ConfigurationError(
            f"backup: {path} has {size_bytes:,} of {file.bytes:,} bytes; use another backup."
        )
    if hashed.hexdigest() != file.sha256:
        raise ConfigurationError(
            f"backup: {path} has changed since it was written (SHA-256); use another backup."
        )
