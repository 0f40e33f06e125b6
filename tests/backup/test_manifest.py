"""Manifests: the newest backup of a directory, and files that are not what they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.backup.manifest import (
    FORMAT,
    BackupFile,
    Manifest,
    locate_backup,
    read_manifest,
    read_verified,
    write_manifest,
)
from aggregator.errors import ConfigurationError

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
    [(b"ab", "has 2 of 3 bytes"), (b"abd", "has changed since it was written"), (None, "cannot be read")],
)
def test_a_changed_file_is_refused(tmp_path: Path, data: bytes | None, message: str) -> None:
    """Lost, changed or missing."""
    if data is not None:
        (tmp_path / "store.rdb").write_bytes(data)

    with pytest.raises(ConfigurationError, match=message):
        list(read_verified(tmp_path, FILE))

    (tmp_path / "store.rdb").write_bytes(b"abc")
    assert b"".join(read_verified(tmp_path, FILE)) == b"abc"
