"""Restore into a server: empty, in use, holding data, or left incomplete by an interruption."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from aggregator.app import open_service
from aggregator.background.tasks import DETECTOR_LEASE_KEY, MAINTENANCE_LEASE_KEY
from aggregator.backup.creation import Manifest
from aggregator.backup.restore import OWN_PREFIXES, copy_keys, restore_server
from aggregator.domain import Article
from aggregator.errors import ConfigurationError, InvalidInput
from aggregator.events.webhooks.dispatcher import LEASE_KEY
from aggregator.index import keys
from aggregator.index.upkeep import format_version
from aggregator.ingest.load_control import BEACON_KEY
from aggregator.runtime import demo
from aggregator.settings import Settings
from aggregator.store.embedded import EmbeddedServer
from aggregator.time_units import format_rfc3339, wall_clock_ms
from tests.backup.helpers import VALUES, backup_of, content
from tests.cli.helpers import run
from tests.support.stores import direct_client, open_patient_store

Backup = tuple[Path, Manifest]
FOREIGN = {b"articles": b"of another program"}


@pytest.fixture
def backup(tmp_path: Path) -> Backup:
    """A backup of VALUES, and of a key of another program."""
    return backup_of(VALUES | {b"foreign": b"1"}, tmp_path)


def test_an_empty_store_gets_the_data(backup: Backup, valkey_url: str) -> None:
    """Keys of other programs are neither copied nor deleted."""
    with direct_client(valkey_url) as client:
        client.mset(FOREIGN)

    assert restore_server(*backup, valkey_url, replace=False) == len(VALUES) - 1

    assert content(valkey_url) == VALUES | FOREIGN


def test_data_is_replaced_only_if_told_so(backup: Backup, valkey_url: str) -> None:
    """Of any version; the refusal names the option."""
    former = {
        b"{format}": b"4 0.1.0", b"r:former": b"1", b"x:former": b"1", b"{en.0.0}former": b"1",
        keys.SPACE_REGISTRY: b"of another version",
    }  # fmt: skip
    with direct_client(valkey_url) as client:
        client.mset(former | FOREIGN)

    with pytest.raises(ConfigurationError, match=r"the store holds data; .* delete its data with --replace"):
        restore_server(*backup, valkey_url, replace=False)
    assert content(valkey_url) == former | FOREIGN
    restore_server(*backup, valkey_url, replace=True)

    assert content(valkey_url) == VALUES | FOREIGN


def test_the_refusal_compares_the_newest_article_with_the_backup(backup: Backup, valkey_url: str) -> None:
    """To the millisecond; its language is another than that of the article before."""
    newest_ms = wall_clock_ms()  # the store refuses articles of another time
    arrivals_ms = iter([newest_ms - 10, newest_ms])

    async def store_articles() -> None:
        clock_ms = [0]
        async with open_service(Settings(store_url=valkey_url), clock=lambda: clock_ms[0]) as service:
            for title in ("The ferry to the island runs again", "Der Zug nach Norden fährt wieder"):
                clock_ms[0] = next(arrivals_ms)
                await service.articles.ingest.submit(Article(id=title, title=title, text=title))

    asyncio.run(store_articles())
    for created_ms, expected in ((newest_ms - 1, "newer than"), (newest_ms, "as old as, or older than,")):
        manifest = msgspec.structs.replace(backup[1], created=format_rfc3339(created_ms))
        refusal = f"its newest article of {format_rfc3339(newest_ms)}, {expected} the backup of "
        with pytest.raises(ConfigurationError, match=refusal):
            restore_server(backup[0], manifest, valkey_url, replace=False)


def test_a_store_with_records_but_without_a_format_is_not_empty(backup: Backup, valkey_url: str) -> None:
    """As an early version left it."""
    with direct_client(valkey_url) as client:
        client.set("r:a", "1")

    with pytest.raises(ConfigurationError, match="the store holds data; restore into an empty one"):
        restore_server(*backup, valkey_url, replace=False)


def test_a_store_that_was_only_looked_at_is_empty(backup: Backup, valkey_url: str, tmp_path: Path) -> None:
    """`aggregator doctor` on an emptied store writes the format and the list of indexes."""
    run("doctor", "--store", valkey_url, "--data-dir", str(tmp_path))
    with direct_client(valkey_url) as client:
        assert set(client.keys()) == {b"{format}", b"{spaces}"}

    assert restore_server(*backup, valkey_url, replace=False) == len(VALUES) - 1


def test_a_store_that_a_service_uses_is_refused(backup: Backup, valkey_url: str) -> None:
    """Also with --replace."""
    with direct_client(valkey_url) as client:
        client.set(DETECTOR_LEASE_KEY, "replica-1", px=1_000_000)

    with pytest.raises(ConfigurationError, match="a service uses this store"):
        restore_server(*backup, valkey_url, replace=True)


async def check_format(url: str) -> None:
    """The check of a start."""
    store = open_patient_store(url)
    try:
        await format_version.check(store)
    finally:
        await store.close()


def test_an_interrupted_restore_is_refused_by_services_and_repeated(backup: Backup, valkey_url: str) -> None:
    """The format is copied last; --replace begins again."""
    restore_server(*backup, valkey_url, replace=False)
    with direct_client(valkey_url) as client:
        client.delete("{format}")

    with pytest.raises(ConfigurationError, match="as an interrupted restore leaves them"):
        asyncio.run(check_format(valkey_url))
    with pytest.raises(ConfigurationError, match="the store holds data"):
        restore_server(*backup, valkey_url, replace=False)
    restore_server(*backup, valkey_url, replace=True)

    assert content(valkey_url) == VALUES
    asyncio.run(check_format(valkey_url))


async def test_all_keys_of_the_service_are_copied(valkey_url: str) -> None:
    """A key with another prefix would be missing after a restore."""
    settings = Settings(store_url=valkey_url, store_texts=True, retention_days=1)
    async with open_service(settings) as service:
        for row in demo.load_rows():
            await service.articles.ingest.submit(Article(id=row["id"], title=row["title"], text=row["text"]))
        key, text = await service.edge.api_keys.add("Desk", "admin")
        await service.edge.api_keys.sessions.start(key.id)
        await service.edge.api_keys.authenticate(text)
        await service.edge.rate_limiter.acquire(key.id)
        await service.background.clock_guard.observe()
        await service.events.read_marks.advance("ann", 1, [])
        await service.articles.refused.add([(b"{}", InvalidInput("text: missing"))])
    with direct_client(valkey_url) as client:
        stored = list(client.scan_iter())

    assert len(stored) > 100
    assert [key for key in stored if not key.startswith(OWN_PREFIXES)] == []


async def test_what_describes_running_processes_is_not_restored(valkey_url: str, tmp_path: Path) -> None:
    """Leases, the longest ones too, and marks of use: a second restore finds no service in the first."""
    settings = Settings(store_url=valkey_url, detector_interval_seconds=60, auth_disabled=True)
    async with open_service(settings) as service:
        await service.background.clock_guard.observe()
        await service.articles.foreign_index.record_use()
        service.articles.load_control.activity.record_arrival()
        await service.background.scheduler.detector.run_once()
        for task in (service.background.maintenance, service.background.webhook_dispatcher):
            await task.run_once()
        await service.background.source_collector.run_once()
        with direct_client(valkey_url) as client, EmbeddedServer(tmp_path / "restored") as target:
            of_processes = {key for key in client.scan_iter() if client.pttl(key) != -1}
            await copy_keys(valkey_url, target.url)
            with direct_client(target.url) as restored:
                missing = set(client.scan_iter()) - set(restored.scan_iter()) - {format_version.FORMAT_KEY}
        await service.background.close()

    assert {DETECTOR_LEASE_KEY, MAINTENANCE_LEASE_KEY, LEASE_KEY, BEACON_KEY} < of_processes
    assert missing == of_processes


def test_a_damaged_backup_changes_nothing(backup: Backup, valkey_url: str) -> None:
    """It is verified first."""
    with direct_client(valkey_url) as client:
        client.mset(FOREIGN | {b"r:a": b"former"})
    (backup[0] / "store.rdb").write_bytes(b"REDIS0011")

    with pytest.raises(ConfigurationError, match="use another backup"):
        restore_server(*backup, valkey_url, replace=True)

    assert content(valkey_url) == FOREIGN | {b"r:a": b"former"}
