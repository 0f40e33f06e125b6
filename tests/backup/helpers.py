"""Backups of small stores, for the tests of this package."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

from aggregator.backup.creation import Manifest, StoreSummary, create_backup, summarize_store
from aggregator.index import keys
from aggregator.index.upkeep.format_version import CURRENT_FORMAT, FORMAT_KEY
from aggregator.store.decoding import PLAIN
from aggregator.store.embedded import EmbeddedServer
from tests.support.stores import direct_client, open_patient_store

NOW_MS = 1_795_420_800_000  # 2026-11-23T08:00:00Z
VALUES = {
    b"r:a": b"1", b"x:b": b"2", b"{en.0.0}c": b"3", FORMAT_KEY: b"%d 0.1.0" % CURRENT_FORMAT,
    keys.SPACE_REGISTRY: PLAIN + b"\x80",
}  # fmt: skip


def back_up(url: str, directory: Path, now_ms: int = NOW_MS, memory_bytes: int = 0) -> tuple[Path, Manifest]:
    """Back up a store; ``memory_bytes`` replaces what the store uses."""

    async def summarize() -> StoreSummary:
        store = open_patient_store(url)
        try:
            return await summarize_store(store)
        finally:
            await store.close()

    summary = asyncio.run(summarize())
    if memory_bytes:
        summary = dataclasses.replace(summary, memory_bytes=memory_bytes)
    return create_backup(url, directory, summary, now_ms)


def backup_of(values: dict[bytes, bytes], directory: Path) -> tuple[Path, Manifest]:
    """A backup of a store with these values."""
    with EmbeddedServer(directory / "source") as server:
        with direct_client(server.url) as client:
            client.mset(values)
        return back_up(server.url, directory / "backups")


def content(url: str) -> dict[bytes, bytes]:
    """All strings of a store but the time of its last backup."""
    with direct_client(url) as client:
        found = {key: client.get(key) for key in client.scan_iter(_type="string")}
    return {key: value for key, value in found.items() if not key.endswith(b"{upkeep}backup")}
