"""Loads a backup into an embedded server of its own, after its checksum was verified."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aggregator.backup.manifest import Manifest, read_verified
from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.append_log import LOG_DIRECTORY
from aggregator.store.durable_files import flush_directory, open_private
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.server_commands import count_keys, select_database

# A log may begin with a base file in the format of a snapshot; without further files it is complete.
_BASE_NAME = "appendonly.aof.1.base.rdb"
# Also files of Redis 7.4 and later, whose strings and streams have not changed; a file that Valkey does not
# understand ends the server.
_ANY_VERSION = {"rdb-version-check": "relaxed"}
_LOG_MANIFEST = f"file {_BASE_NAME} seq 1 type b\n"


def write_log(backup: Path, manifest: Manifest, data_dir: Path) -> None:
    """Make a new directory the data directory of a server with the content of the backup.

    Raises ConfigurationError if the file of the backup is not the one that was written, OSError.
    """
    log = data_dir / LOG_DIRECTORY
    log.mkdir(mode=0o700, parents=True)
    with open(log / _BASE_NAME, "xb", opener=open_private) as output:
        for part in read_verified(backup, manifest.snapshot):
            output.write(part)
        output.flush()
        os.fsync(output.fileno())
    with open(log / "appendonly.aof.manifest", "x", opener=open_private) as file:
        file.write(_LOG_MANIFEST)
    flush_directory(log)


@contextmanager
def loaded(backup: Path, manifest: Manifest, data_dir: Path) -> Iterator[EmbeddedServer]:
    """A server on the new directory ``data_dir`` that has loaded the backup, with all its keys.

    Raises ConfigurationError if the backup is damaged or this server cannot read it, OSError.
    """
    write_log(backup, manifest, data_dir)
    server = EmbeddedServer(data_dir, config_overrides=_ANY_VERSION)
    try:
        server.start()
    except StoreUnavailable as error:
        raise ConfigurationError(
            f"backup: the embedded store cannot load {backup / manifest.snapshot.name} (format "
            f"{manifest.snapshot.rdb_version} of {manifest.server}): {error}"
        ) from error
    with server:
        _check_keys(server.url, backup, manifest)
        yield server


def _check_keys(url: str, backup: Path, manifest: Manifest) -> None:
    """Compare the number of keys without a time to live: the others may have expired since."""
    file = manifest.snapshot
    select_database(url, file.database)
    found = count_keys(url)
    lasting = file.keys - file.expiring
    if file.keys and found.keys - found.expiring != lasting:
        raise ConfigurationError(
            f"backup: {backup / file.name} has {found.keys - found.expiring:,} lasting keys instead of the "
            f"{lasting:,} of its manifest; use another backup."
        )


def remove_directory(path: Path) -> None:
    """Delete a directory if it exists. Raises OSError."""
    if path.exists():
        shutil.rmtree(path)
