"""Restore as an embedded store: what is refused, what is kept, and each instant of an interruption."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
import pytest

from aggregator.backup.creation import Manifest, read_manifest
from aggregator.backup.restore import restore_directory
from aggregator.errors import ConfigurationError
from aggregator.store.append_log import LOG_DIRECTORY
from aggregator.store.embedded import EmbeddedServer
from tests.backup.helpers import NOW_MS, VALUES, back_up, backup_of, content
from tests.support.stores import direct_client

pytestmark = pytest.mark.integration

OTHER = {b"r:%d" % number: b"x" * 2000 for number in range(20)}
Backup = tuple[Path, Manifest]


@pytest.fixture
def backup(tmp_path: Path) -> Backup:
    """A backup of VALUES."""
    return backup_of(VALUES, tmp_path)


def fill(data_dir: Path) -> None:
    """Store OTHER in a directory."""
    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        client.mset(OTHER)


def stored(data_dir: Path) -> dict[bytes, bytes]:
    """What a store on this directory contains."""
    with EmbeddedServer(data_dir) as server:
        return content(server.url)


@pytest.mark.parametrize("replace", [False, True])
def test_an_empty_directory_gets_the_data(backup: Backup, tmp_path: Path, replace: bool) -> None:
    """The store starts on it with recorded lengths; nothing else is left, and only this user can read it."""
    target = tmp_path / "new" / "data"

    assert restore_directory(*backup, target, NOW_MS, replace=replace) is None

    assert {path.name for path in target.iterdir()} == {
        LOG_DIRECTORY, "lock", "server.lock", "log-lengths.json",
    }  # fmt: skip
    assert {path.stat().st_mode & 0o077 for path in target.rglob("*")} == {0}
    assert stored(target) == VALUES
    assert stored(target) == VALUES


def test_data_is_replaced_only_if_told_so(backup: Backup, tmp_path: Path) -> None:
    """The former log is kept."""
    target = tmp_path / "data"
    fill(target)

    with pytest.raises(
        ConfigurationError, match=r"holds data, last written .*replace the data with --replace"
    ):
        restore_directory(*backup, target, NOW_MS, replace=False)
    assert stored(target) == OTHER
    former = restore_directory(*backup, target, NOW_MS, replace=True)

    assert stored(target) == VALUES
    assert former == target / "appendonlydir.before-2026-11-23T080000Z"
    (tmp_path / "again").mkdir()
    former.rename(tmp_path / "again" / LOG_DIRECTORY)
    assert stored(tmp_path / "again") == OTHER


@pytest.mark.parametrize(("written_s", "word"), [(NOW_MS // 1000 + 60, "newer than"), (1, "older than")])
def test_the_refusal_compares_the_times(backup: Backup, tmp_path: Path, written_s: int, word: str) -> None:
    """Of the last write and of the backup."""
    target = tmp_path / "data"
    fill(target)
    for path in (target / LOG_DIRECTORY).iterdir():
        os.utime(path, (written_s, written_s))

    with pytest.raises(ConfigurationError, match=word):
        restore_directory(*backup, target, NOW_MS, replace=False)


def test_a_directory_in_use_is_refused(backup: Backup, tmp_path: Path) -> None:
    """Also with --replace."""
    with EmbeddedServer(tmp_path / "data") as server:
        with pytest.raises(
            ConfigurationError, match=f"is in use by process {os.getpid()}; stop that service"
        ):
            restore_directory(*backup, tmp_path / "data", NOW_MS, replace=True)
        assert content(server.url) == {}


def with_sha256_of(manifest: Manifest, path: Path) -> Manifest:
    """The manifest with the checksum of this file."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return msgspec.structs.replace(
        manifest, snapshot=msgspec.structs.replace(manifest.snapshot, sha256=digest)
    )


@pytest.mark.parametrize("version", [b"0012", b"0014"])
def test_a_file_of_a_later_redis_is_loaded(backup: Backup, tmp_path: Path, version: bytes) -> None:
    """Valkey loads it only with a setting, which the embedded store has."""
    path, manifest = backup
    data = bytearray((path / "store.rdb").read_bytes())
    data[5:9], data[-8:] = version, bytes(8)  # the checksum 0 is not compared
    (path / "store.rdb").write_bytes(data)

    restore_directory(
        path, with_sha256_of(manifest, path / "store.rdb"), tmp_path / "data", NOW_MS, replace=False
    )

    assert stored(tmp_path / "data") == VALUES


def damage(backup: Path) -> None:
    """Change one byte of the values, and the checksum of the manifest with it."""
    path = backup / "store.rdb"
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("consistent", [False, True])
def test_a_damaged_backup_changes_nothing(tmp_path: Path, backup: Backup, consistent: bool) -> None:
    """The server notices what a manifest that was changed as well does not."""
    path, manifest = backup
    damage(path)
    if consistent:
        manifest = with_sha256_of(manifest, path / "store.rdb")
    target = tmp_path / "data"
    fill(target)

    with pytest.raises(ConfigurationError, match=r"cannot load|use another backup"):
        restore_directory(path, manifest, target, NOW_MS, replace=True)

    assert stored(target) == OTHER


def test_a_backup_of_a_later_format_changes_nothing(tmp_path: Path) -> None:
    """This version could not read the data."""
    target = tmp_path / "data"
    fill(target)

    with pytest.raises(ConfigurationError, match="the data is of format 999"):
        restore_directory(
            *backup_of({**VALUES, b"{format}": b"999 9.9.9"}, tmp_path), target, NOW_MS, replace=True
        )

    assert stored(target) == OTHER


@pytest.mark.parametrize("step", range(6))
def test_an_interruption_is_repaired_by_repeating(
    backup: Backup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """After each renaming: the store has the former or the new data, or refuses to start."""
    target = tmp_path / "data"
    fill(target)
    steps = iter(range(step))
    original = {"rename": Path.rename, "replace": Path.replace}

    def failing(name: str) -> object:
        def call(path: Path, other: Path) -> Path:
            # Only steps in the target: the server renames its own files, too.
            if path.is_relative_to(target) and other.parent == target and next(steps, None) is None:
                raise KeyboardInterrupt
            return original[name](path, other)

        return call

    with monkeypatch.context() as patched:
        for name in original:
            patched.setattr(Path, name, failing(name))
        try:
            restore_directory(*backup, target, NOW_MS, replace=True)
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
    assert interrupted == (step < 3)

    try:
        assert stored(target) in (OTHER, VALUES)
    except ConfigurationError as error:
        assert "restore a backup" in str(error)
    restore_directory(*backup, target, NOW_MS + 1000, replace=True)
    assert stored(target) == VALUES
    assert not (target / "restore.partial").exists()


@pytest.mark.redis
def test_another_database_of_a_redis_server_is_restored(redis_url: str, tmp_path: Path) -> None:
    """The embedded store has one; the keys of the server's other databases are left out."""
    with direct_client(redis_url) as client:
        client.set("elsewhere", "1")
    url = f"{redis_url}?db=3"
    with direct_client(url) as client:
        client.mset(VALUES)

    backup, manifest = back_up(url, tmp_path / "backups")
    restore_directory(backup, manifest, tmp_path / "data", NOW_MS, replace=False)

    assert read_manifest(backup).database == 3
    assert stored(tmp_path / "data") == VALUES


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_of_the_directory_gets_what_root_restores(backup: Backup, tmp_path: Path) -> None:
    """So that the service, which runs as this user, can start; also after root has opened the store."""
    target = tmp_path / "data"
    fill(target)
    for path in (target, *target.rglob("*")):
        os.chown(path, 4711, 4711)

    restore_directory(*backup, target, NOW_MS, replace=True)

    assert {path.stat().st_uid for path in target.rglob("*")} == {4711}
    assert stored(target) == VALUES
    assert {path.stat().st_uid for path in target.rglob("*")} == {4711}
