"""Restores a backup: as the data directory of an embedded store, or into a server or cluster.

It is verified, and loaded by a server of its own, before anything is changed. Of a **data directory** the
verified log replaces the former one, which is kept under another name; after an interruption the command is
repeated. Into a **server** keys are copied, the format key last: no service starts on an incomplete store.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from aggregator.background.tasks import DETECTOR_LEASE_KEY, MAINTENANCE_LEASE_KEY, last_backup
from aggregator.backup.creation import Manifest, read_verified
from aggregator.errors import AggregatorError, ConfigurationError, StoreUnavailable
from aggregator.index import keys
from aggregator.index.article_stream import ArticleStream
from aggregator.index.segments import Segments
from aggregator.index.upkeep import format_version
from aggregator.index.upkeep.spaces import registry_of
from aggregator.store.address import parse_address
from aggregator.store.append_log import EMPTY_LOG_BYTES, LOG_DIRECTORY, MANIFEST_NAME, RECORD_NAME
from aggregator.store.base import Put, Store
from aggregator.store.client import RedisClient, open_client
from aggregator.store.disk import (
    exclude_service,
    flush_directory,
    give_to_owner,
    temporary_directory,
    write_flushed,
)
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.factory import checked_store
from aggregator.store.identity import accept, identities_of, remembered_ids
from aggregator.time_units import MINUTE_MS, format_rfc3339

PARTIAL_NAME = "restore.partial"
# All keys of the service begin like this; a server may also hold keys of other programs.
OWN_PREFIXES = (b"{", keys.RECORD_PREFIX, keys.TEXT_PREFIX, b"session:", b"read:", b"refused")
PROCESS_TTL_MS = 3 * MINUTE_MS  # what describes a running process expires by then: leases, marks of use
# A log may begin with a base file in the format of a snapshot; without further files it is complete.
_BASE_NAME = "appendonly.aof.1.base.rdb"
_DATABASES = 16  # of the embedded server
_KEYS_PER_SCAN = 1000
_ENTRIES_PER_READ = 1000


@contextmanager
def loaded(backup: Path, manifest: Manifest, data_dir: Path) -> Iterator[EmbeddedServer]:
    """A server on a new directory with the data of the backup. Raises ConfigurationError, OSError."""
    log = data_dir / LOG_DIRECTORY
    log.mkdir(mode=0o700, parents=True)
    write_flushed(log / _BASE_NAME, read_verified(backup, manifest.snapshot))
    write_flushed(log / MANIFEST_NAME, [f"file {_BASE_NAME} seq 1 type b\n".encode()])
    flush_directory(log)
    server = EmbeddedServer(data_dir)
    try:
        server.start()
    except AggregatorError as error:
        raise ConfigurationError(
            f"backup: the embedded store cannot load {backup / manifest.snapshot.name} (written by "
            f"{manifest.server}): {error}"
        ) from error
    with server:
        asyncio.run(_keep_database(server.url, manifest.database))
        yield server


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
            raise ConfigurationError(
                f"data_dir: {data_dir} holds data, last written {manifest.compare_age(written_ms)}; "
                "choose an empty directory, or replace the data with --replace (the former log is kept)."
            )
        shutil.rmtree(partial, ignore_errors=True)
        with loaded(backup, manifest, partial) as server:
            asyncio.run(_check_format(server.url, manifest, remembered_ids(data_dir)))
        kept = data_dir / f"{LOG_DIRECTORY}.before-{format_rfc3339(now_ms)[:19].replace(':', '')}Z"
        former = log.rename(kept) if log.exists() else None
        # Until the last step the recorded lengths are those of the former log.
        (partial / LOG_DIRECTORY).rename(log)
        (partial / RECORD_NAME).replace(data_dir / RECORD_NAME)
        flush_directory(data_dir)
        shutil.rmtree(partial, ignore_errors=True)
        give_to_owner(data_dir)
        return former


def last_written_ms(log: Path) -> int | None:
    """When a log was last written to; None if it holds no data."""
    states = [path.stat() for path in log.glob("*")] if log.is_dir() else []
    if sum(state.st_size for state in states) <= EMPTY_LOG_BYTES:
        return None
    return max(state.st_mtime_ns for state in states) // 1_000_000


def restore_server(
    backup: Path, manifest: Manifest, url: str, *, replace: bool, known: Sequence[str] = ()
) -> int:
    """Copy the backup into the store at ``url``, whatever its version; the number of keys. Blocks.

    ``known``: identities that processes remember. The temporary server needs as much memory as the store, and
    disk space for a copy of the backup. Raises ConfigurationError as ``restore_directory``, StoreUnavailable.
    """
    asyncio.run(_check_target(manifest, url, replace=replace))
    with temporary_directory() as directory, loaded(backup, manifest, directory / "data") as server:
        return asyncio.run(_replace_data(server.url, url, manifest, known))


async def _check_target(manifest: Manifest, url: str, *, replace: bool) -> None:
    async with checked_store(url, _any_format) as target:
        if any(lease is not None for lease in await target.read([DETECTOR_LEASE_KEY, MAINTENANCE_LEASE_KEY])):
            raise ConfigurationError(
                "store_url: a service uses this store; stop all its processes, wait 30 s, and try again."
            )
        if replace or await _is_unused(target):
            return
        age = await _describe_age(target, manifest)
        raise ConfigurationError(
            f"store_url: the store holds data{age}; restore into an empty one, or delete its data with "
            "--replace."
        )


async def _is_unused(store: Store) -> bool:
    """Whether nothing was stored: a look at a new store writes its format and the list of indexes."""
    for prefix in OWN_PREFIXES:
        async for found in store.scan_batches(prefix):
            if not {format_version.FORMAT_KEY, keys.SPACE_REGISTRY}.issuperset(found):
                return False
    return True


async def _describe_age(store: Store, manifest: Manifest) -> str:
    """How the newest article compares with the backup; empty if this version can read none."""
    with suppress(StoreUnavailable):  # damaged, or of another format
        spaces = [*await registry_of(store).read()]
        for newest in await ArticleStream(store, Segments(store), spaces).recent_entries(1):
            return f", its newest article of {manifest.compare_age(newest.arrived_ms)}"
    return ""


async def _replace_data(source_url: str, target_url: str, manifest: Manifest, known: Sequence[str]) -> int:
    source_url += f"?prefix={parse_address(target_url).prefix.decode()}"
    async with (
        checked_store(source_url, format_version.check) as source,
        checked_store(target_url, _any_format) as target,
    ):
        data_format = (await source.read([format_version.FORMAT_KEY]))[0]
        former = await identities_of(target)
        for prefix in OWN_PREFIXES:
            async for found in target.scan_batches(prefix):
                await target.delete(found)
        copied = await copy_keys(source_url, target_url)
        await accept(target, [*known, *former])
        await last_backup(target).edit(lambda _: manifest.created_ms)
        if data_format is not None:
            await target.put([Put(format_version.FORMAT_KEY, data_format)])
        return copied


async def _any_format(_: Store) -> None:
    """Whatever is there is replaced."""


async def copy_keys(source_url: str, target_url: str) -> int:
    """Copy the service's strings with their times to live, and its streams, without the format key.

    A key that exists is replaced. Left out are keys of other types, which the index does not have, and what
    expires within ``PROCESS_TTL_MS``. Returns the number of keys. Both servers must be unused by other
    programs meanwhile; the source is no cluster.
    """
    source, target = open_client(source_url), open_client(target_url)
    copied = 0
    try:
        for kind, copy in ((b"stream", _copy_streams), (b"string", _copy_strings)):
            cursor: Any = 0
            while cursor != b"0":
                scan = ("SCAN", cursor, "COUNT", _KEYS_PER_SCAN, "TYPE", kind)
                ((cursor, found),) = await source.send([scan])
                own = [key.removeprefix(source.prefix) for key in found if key.startswith(source.prefix)]
                chosen = [k for k in own if k.startswith(OWN_PREFIXES) and k != format_version.FORMAT_KEY]
                copied += await copy(source, target, chosen) if chosen else 0
    finally:
        await source.close()
        await target.close()
    return copied


async def _copy_strings(source: RedisClient, target: RedisClient, keys: Sequence[bytes]) -> int:
    values, *lifetimes = await source.send([("MGET", *keys), *(("PTTL", key) for key in keys)])
    commands = [
        ("SET", key, value, *(("PX", ttl_ms) if ttl_ms >= 0 else ()))
        for key, value, ttl_ms in zip(keys, values, lifetimes, strict=True)
        if value is not None and (ttl_ms == -1 or ttl_ms > PROCESS_TTL_MS)  # -2: expired since it was scanned
    ]
    await target.send(commands)
    return len(commands)


async def _copy_streams(source: RedisClient, target: RedisClient, keys: Sequence[bytes]) -> int:
    for key in keys:
        (report,) = await source.send([("XINFO", "STREAM", key)])
        last = dict(zip(report[::2], report[1::2], strict=True))[b"last-generated-id"]
        await target.send([("DEL", key)])
        after = b"-"
        while True:
            (entries,) = await source.send([("XRANGE", key, after, b"+", b"COUNT", _ENTRIES_PER_READ)])
            if not entries:
                break
            await target.send([("XADD", key, position, *pairs) for position, pairs in entries])
            after = b"(" + entries[-1][0]
        # Also for a stream without entries: positions of later entries must not repeat earlier ones.
        if after != b"-":
            await target.send([("XSETID", key, last)])
        elif last != b"0-0":
            await target.send([("XADD", key, "MAXLEN", 0, last, b"-", b"-")])
    return len(keys)


async def _check_format(url: str, manifest: Manifest, known: Sequence[str]) -> None:
    async with checked_store(url, format_version.check) as store:
        await accept(store, known)
        await last_backup(store).edit(lambda _: manifest.created_ms)


async def _keep_database(url: str, number: int) -> None:
    """Make a database of an embedded server its database 0, and delete the keys of all others."""
    client = open_client(url, max_connections=1)
    others = [command for n in range(1, _DATABASES) for command in (("SELECT", n), ("FLUSHDB", "ASYNC"))]
    try:
        await client.send([("SWAPDB", 0, number), *others, ("SELECT", 0)])
    finally:
        await client.close()
