"""Creation of backups: contents of the manifest, runs that fail or are interrupted, and old backups."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from aggregator.app import open_service
from aggregator.backup import creation
from aggregator.backup.creation import (
    FORMAT,
    BackupFile,
    IndexSummary,
    Manifest,
    find_backups,
    locate_backup,
    read_manifest,
    read_verified,
    remove_old_backups,
    write_manifest,
)
from aggregator.domain import Article
from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.index.upkeep.format_version import CURRENT_FORMAT
from aggregator.settings import Settings
from aggregator.store.disk import FileLock
from aggregator.store.embedded import EmbeddedServer
from tests.backup.helpers import NOW_MS, VALUES, back_up, backup_of
from tests.cli.helpers import run
from tests.support.server_fixture import ROOT
from tests.support.slow_snapshot import slow_down_snapshots, wait_for_snapshot
from tests.support.stores import direct_client

COMMAND = (sys.executable, "-m", "aggregator", "backup")


async def test_the_manifest_describes_the_store(valkey_url: str, tmp_path: Path) -> None:
    """Versions, models, about how many articles, number of keys; only this user can read the directory."""
    async with open_service(Settings(store_url=valkey_url)) as service:
        for number in range(3):
            await service.articles.ingest.submit(
                Article(id=f"a{number}", title=f"Title {number}", text="A text. " * 40)
            )
        spaces = service.articles.index.spaces
        summary = await creation.summarize_store(service.store)

    backup, manifest = creation.create_backup(valkey_url, tmp_path / "backups", summary, NOW_MS)

    assert backup.name == "aggregator-20261123T080000Z"
    assert read_manifest(backup) == manifest
    assert sorted(index.name for index in manifest.indexes) == sorted(spaces)
    assert sum(index.articles for index in manifest.indexes) == 3
    with direct_client(valkey_url) as client:
        assert manifest.keys == client.dbsize()
    assert manifest.data_format.startswith(f"{CURRENT_FORMAT} ")
    assert tmp_path.joinpath("backups").stat().st_mode & 0o077 == backup.stat().st_mode & 0o077 == 0


def test_fitted_models_are_part_of_a_backup(valkey_url: str, tmp_path: Path) -> None:
    """One directory each; one that this machine does not have is left out."""
    for name in ("en.model", "notes.txt"):
        (tmp_path / name).write_bytes(name.encode())
    indexes = [
        IndexSummary(name, models_dir, 0)
        for name, models_dir in (("en.0000", str(tmp_path)), ("ru.0000", "/absent"), ("zh.0000", ""))
    ]

    backup, manifest = creation.create_backup(
        valkey_url, tmp_path / "backups", creation.StoreSummary("", indexes, 0), NOW_MS
    )

    (model,) = manifest.models
    assert read_manifest(backup).models == [model]
    assert model.name.endswith("/en.model")
    assert b"".join(read_verified(backup, model)) == b"en.model"
    (backup / model.name).write_bytes(b"other")
    assert run("restore", str(backup), "--check") == 2


@pytest.mark.integration
def test_a_failed_run_leaves_no_backup(tmp_path: Path) -> None:
    """The store is gone before the snapshot begins."""
    with EmbeddedServer(tmp_path / "data") as server:
        url = server.url
    summary = creation.StoreSummary("", [], 0)

    with pytest.raises(StoreUnavailable):
        creation.create_backup(url, tmp_path / "backups", summary, NOW_MS)

    assert [path.name for path in (tmp_path / "backups").iterdir()] == [creation.LOCK_NAME]


@pytest.mark.services
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_run_leaves_nothing_that_matters(tmp_path: Path, signal_number: int) -> None:
    """No backup and no changed setting of the server; the next run succeeds and removes what was left."""
    backups = tmp_path / "backups"
    with EmbeddedServer(tmp_path / "data") as server, direct_client(server.url) as client:
        client.set("{format}", f"{CURRENT_FORMAT} 0.1.0")
        slow_down_snapshots(client)
        before = client.config_get("*")
        command = [*COMMAND, str(backups), "--store", server.url]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
            wait_for_snapshot(client, running=True)
            os.kill(process.pid, signal_number)
        wait_for_snapshot(client, running=False)

        assert process.returncode != 0
        assert find_backups(backups) == []
        assert client.config_get("*") == before
        client.config_set("rdb-key-save-delay", 0)
        backup, _ = back_up(server.url, backups)

    assert sorted(path.name for path in backups.iterdir()) == [creation.LOCK_NAME, backup.name]


def test_two_runs_into_one_directory_exclude_each_other(tmp_path: Path) -> None:
    """The second would delete what the first has written."""
    lock = FileLock(tmp_path / creation.LOCK_NAME)
    assert lock.try_lock()

    with pytest.raises(ConfigurationError, match=r"another backup into .* is running"):
        creation.create_backup("unix:///absent", tmp_path, creation.StoreSummary("", [], 0), NOW_MS)

    lock.close(unlock=True)


def test_a_full_disk_is_noticed_before(valkey_url: str, tmp_path: Path) -> None:
    """A backup on the disk of the store would stop the service."""
    with pytest.raises(ConfigurationError, match=r"MB of free space; the backup may need 1,000,000,000 MB"):
        back_up(valkey_url, tmp_path, memory_bytes=10**15)


@pytest.mark.integration
def test_old_backups_are_deleted(tmp_path: Path) -> None:
    """Only complete ones count, and other files stay."""
    with EmbeddedServer(tmp_path / "data") as server:
        made = [back_up(server.url, tmp_path / "backups", NOW_MS + n * 1000)[0] for n in range(4)]
    (tmp_path / "backups" / "notes").touch()

    assert remove_old_backups(tmp_path / "backups", 2) == made[:2]

    assert sorted(path.name for path in (tmp_path / "backups").iterdir()) == [
        creation.LOCK_NAME, made[2].name, made[3].name, "notes",
    ]  # fmt: skip


@pytest.mark.integration
def test_two_backups_of_one_second_are_refused(tmp_path: Path) -> None:
    """The name of a backup is its second."""
    backup_of(VALUES, tmp_path)

    with pytest.raises(ConfigurationError, match="exists already"):
        backup_of(VALUES, tmp_path)


SHA256_OF_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
FILE = BackupFile("store.rdb", 3, SHA256_OF_ABC)


def manifest(number: int = FORMAT) -> Manifest:
    """A manifest of this format."""
    return Manifest(number, "2026-11-23T08:00:00Z", "9.9.9", "4 0.1.0", "valkey 9.1.2", [], FILE, 0, 1)


def test_the_newest_complete_backup_is_found(tmp_path: Path) -> None:
    """Names sort by time; what has no manifest or is partial is no backup."""
    for name in ("aggregator-20260101T000000Z", "aggregator-20260301T000000Z", "other"):
        (tmp_path / name).mkdir()
        write_manifest(tmp_path / name, manifest())
    (tmp_path / "aggregator-20260401T000000Z").mkdir()
    (tmp_path / "aggregator-20260501T000000Z.partial").mkdir()
    write_manifest(tmp_path / "aggregator-20260501T000000Z.partial", manifest())

    assert locate_backup(tmp_path) == tmp_path / "aggregator-20260301T000000Z"
    assert locate_backup(tmp_path / "other") == tmp_path / "other"
    assert read_manifest(tmp_path / "other") == manifest()


@pytest.mark.parametrize(
    ("counts", "is_right"),
    [((7581, 7590, 0), False), ((900, 0, 0, 0), False), ((900, 450), True), ((), True)],
)
def test_backups_of_an_emptied_store_replace_no_larger_ones(
    tmp_path: Path, counts: tuple[int, ...], is_right: bool
) -> None:
    """Neither as the newest one to restore nor by ``--keep``; one that names its path is restored."""
    paths = [tmp_path / f"aggregator-2026010{day}T000000Z" for day in range(len(counts))]
    for path, count in zip(paths, counts, strict=True):
        path.mkdir()
        indexes = [IndexSummary("en.0.0", "", count - count // 3), IndexSummary("zh.0.0", "", count // 3)]
        write_manifest(path, msgspec.structs.replace(manifest(), indexes=indexes))

    if is_right:
        assert remove_old_backups(tmp_path, 1) == paths[:-1]
        return
    for refused in (lambda: locate_backup(tmp_path), lambda: remove_old_backups(tmp_path, 1)):
        with pytest.raises(
            ConfigurationError, match=r"about 0 articles, less than half .*restore one by its"
        ):
            refused()
    assert all(path.exists() for path in paths)
    assert locate_backup(paths[0]) == paths[0]


@pytest.mark.parametrize("name", ["empty", "absent"])
def test_a_directory_without_backups_is_refused(tmp_path: Path, name: str) -> None:
    """With its name."""
    (tmp_path / "empty").mkdir()

    with pytest.raises(ConfigurationError, match=f"{name} neither is a backup nor contains one"):
        locate_backup(tmp_path / name)


def test_a_manifest_of_another_format_is_refused(tmp_path: Path) -> None:
    """The sentence names the version that reads it."""
    write_manifest(tmp_path, manifest(FORMAT + 1))

    with pytest.raises(ConfigurationError, match=r"has format 2; this version reads 1; .* \(9\.9\.9\)"):
        read_manifest(tmp_path)


def test_damaged_json_is_refused(tmp_path: Path) -> None:
    """As a cut manifest."""
    (tmp_path / "manifest.json").write_text('{"format": 1')

    with pytest.raises(ConfigurationError, match="is not the manifest of a backup"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"ab", "it has 2 of 3 bytes"), (b"abd", "has changed since it was written"), (None, "cannot be read")],
)
def test_a_changed_file_is_refused(tmp_path: Path, data: bytes | None, message: str) -> None:
    """Lost, changed or missing."""
    if data is not None:
        (tmp_path / "store.rdb").write_bytes(data)

    with pytest.raises(ConfigurationError, match=message):
        list(read_verified(tmp_path, FILE))

    (tmp_path / "store.rdb").write_bytes(b"abc")
    assert b"".join(read_verified(tmp_path, FILE)) == b"abc"
