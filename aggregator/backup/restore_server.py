"""Restores a backup into a server or a cluster, over the network and whatever the version of the server.

The format key of the target names the backup until all keys are copied: no service starts on an incomplete
store, and the same command continues after an interruption, by copying everything again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from aggregator.background.maintenance import MAINTENANCE_LEASE_KEY
from aggregator.background.scheduler import DETECTOR_LEASE_KEY
from aggregator.backup.loading import loaded
from aggregator.backup.manifest import Manifest
from aggregator.errors import ConfigurationError
from aggregator.index import format_version, keys
from aggregator.index.clock_guard import read_last_use_ms
from aggregator.store.base import Put, Store
from aggregator.store.copying import OnProgress, copy_keys
from aggregator.store.durable_files import TemporaryDirectory
from aggregator.store.redis import open_redis_store
from aggregator.time_units import format_rfc3339

# All keys of the service begin like this; a server may also hold keys of other programs.
OWN_PREFIXES = (b"{", keys.RECORD_PREFIX, keys.TEXT_PREFIX, b"session:")


def restore_server(
    backup: Path, manifest: Manifest, url: str, *, replace: bool, on_progress: OnProgress = lambda _: None
) -> int:
    """Copy the backup into the store at ``url``; the number of keys. Blocks.

    It is loaded into a temporary server first, which needs as much memory as the store, and disk space for a
    copy of the backup. Raises ConfigurationError if the target is in use, or holds data and ``replace`` is
    False, or if the backup is damaged or of a format that this version does not read; StoreUnavailable.
    """
    asyncio.run(_check_target(backup, manifest, url, replace=replace))
    with TemporaryDirectory() as directory, loaded(backup, manifest, directory / "data") as server:
        return asyncio.run(_copy(backup, server.url, url, on_progress))


async def _copy(backup: Path, source_url: str, target_url: str, on_progress: OnProgress) -> int:
    source, target = open_redis_store(source_url), open_redis_store(target_url)
    try:
        await format_version.check(source)
        data_format = (await source.read([format_version.FORMAT_KEY]))[0]
        await target.put([Put(format_version.FORMAT_KEY, _mark(backup))])
        for prefix in OWN_PREFIXES:
            async for found in target.scan_batches(prefix):
                await target.delete([key for key in found if key != format_version.FORMAT_KEY])
        copied = await copy_keys(source_url, target_url, _is_copied, on_progress)
        if data_format is None:
            await target.delete([format_version.FORMAT_KEY])
        else:
            await target.put([Put(format_version.FORMAT_KEY, data_format)])
        return copied
    finally:
        await source.close()
        await target.close()


def _is_copied(key: bytes) -> bool:
    return key.startswith(OWN_PREFIXES) and key != format_version.FORMAT_KEY


def _mark(backup: Path) -> bytes:
    return format_version.RESTORE_MARK + backup.name.encode()


async def _check_target(backup: Path, manifest: Manifest, url: str, *, replace: bool) -> None:
    """Raise ConfigurationError unless the store may be written."""
    target = open_redis_store(url)
    try:
        await target.check()
        if any(lease is not None for lease in await target.read([DETECTOR_LEASE_KEY, MAINTENANCE_LEASE_KEY])):
            raise ConfigurationError(
                "store_url: a service uses this store; stop all its processes, wait 30 s, and try again."
            )
        raw = (await target.read([format_version.FORMAT_KEY]))[0]
        if replace or raw == _mark(backup) or (raw is None and not await _has_records(target)):
            return
        if raw is not None and raw.startswith(format_version.RESTORE_MARK):
            content = f"an incomplete restore of {raw.removeprefix(format_version.RESTORE_MARK).decode()}"
        else:
            content = f"data{_describe_age(await read_last_use_ms(target), manifest)}"
        raise ConfigurationError(
            f"store_url: the store holds {content}; restore into an empty one, or "
            "delete its data with --replace."
        )
    finally:
        await target.close()


def _describe_age(used_ms: int | None, manifest: Manifest) -> str:
    if used_ms is None:
        return ""
    return f", last in use {manifest.compare_age(format_rfc3339(used_ms))}"


async def _has_records(store: Store) -> bool:
    async for found in store.scan_batches(keys.RECORD_PREFIX):
        if found:
            return True
    return False
