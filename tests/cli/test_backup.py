"""``aggregator backup`` and ``aggregator restore``: output, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aggregator.store.embedded import EmbeddedServer
from tests.backup.helpers import VALUES, backup_of
from tests.cli.helpers import run
from tests.support.stores import direct_client

pytestmark = pytest.mark.integration


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The directory of a store that is not running."""
    with EmbeddedServer(tmp_path / "data"):
        pass
    return tmp_path / "data"


def test_a_store_that_is_not_running_is_backed_up(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output is the path, for scripts; it can be checked and restored."""
    assert run("backup", str(tmp_path / "backups"), f"--data-dir={data_dir}") == 0
    captured = capsys.readouterr()
    (backup,) = (tmp_path / "backups").glob("aggregator-*")
    assert captured.out == f"{backup}\n"
    assert "0 keys, about 0 articles" in captured.err

    with EmbeddedServer(data_dir) as server:
        assert run("doctor", f"--data-dir={data_dir}", f"--store={server.url}") in (0, 1, 2, 3)
    assert re.search("^ok +backup +The last complete .* was at 2", capsys.readouterr().out, re.MULTILINE)

    assert run("restore", str(backup), "--check") == 0
    assert "can be loaded with all its keys" in capsys.readouterr().out
    assert run("restore", str(tmp_path / "backups"), f"--data-dir={tmp_path / 'new'}") == 0
    output = capsys.readouterr().out
    assert f"{tmp_path / 'new'} is restored." in output
    with EmbeddedServer(tmp_path / "new") as server, direct_client(server.url) as client:
        assert client.get(b"{upkeep}backup") is not None, "although this was the first backup"
    for undone in ("created since then are gone", "revoked are valid", "distrusted are trusted again"):
        assert undone in output


def test_a_backup_that_this_version_cannot_restore_fails_its_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of an earlier format has the right checksum and can be loaded, and ``restore`` refuses it."""
    backup, _ = backup_of({**VALUES, b"{format}": b"1 0.0.1"}, tmp_path)
    assert run("restore", str(backup), "--check") == 2
    captured = capsys.readouterr()
    assert "the data is of format 1, written by version 0.0.1" in captured.err and not captured.out


def test_a_full_store_is_backed_up_without_its_time(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The backup is complete, so this is a success, and the output says what is missing."""
    assert run("keys", "add", "root", "--role", "admin", "--store", valkey_url) == 0
    with direct_client(valkey_url) as client:
        client.config_set("maxmemory", "1")
        try:
            assert run("backup", str(tmp_path / "backups"), "--store", valkey_url) == 0
        finally:
            client.config_set("maxmemory", "0")

    said = capsys.readouterr().err
    assert "The backup is complete, but alerts do not know its time: The store at" in said
    assert "is full" in said


def test_an_emptied_store_replaces_no_backup(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is backed up, and the older backup stays, until the operator deletes it."""
    articles = tmp_path / "articles.jsonl"
    articles.write_text(
        '{"id": "mill", "text": "The old mill of Brackwater grinds flour again this autumn."}'
    )
    assert run("ingest", str(articles), "--store", valkey_url) == 0
    backups = tmp_path / "backups"
    assert run("backup", str(backups), "--store", valkey_url, "--keep", "1") == 0
    (good,) = backups.glob("aggregator-*")
    good = good.rename(backups / "aggregator-20260101T000000Z")
    with direct_client(valkey_url) as client:
        client.flushall()
    capsys.readouterr()

    for day in (2, 3):
        assert run("backup", str(backups), "--store", valkey_url, "--keep", "1") == 2
        made = Path(capsys.readouterr().out.strip())
        assert good.is_dir()
        assert run("restore", str(backups), "--check") == 2
        assert f"less than half of the 1 of {good.name}: was the store emptied" in capsys.readouterr().err
        made.rename(backups / f"aggregator-2026010{day}T000000Z")
    assert run("restore", str(good), "--check") == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("backup", "out", "--store", "memory"), "one in memory ends here"),
        (("backup", "out", "--data-dir", "absent"), "absent does not exist, so it contains no store"),
        (("backup", "/proc/none"), "directory: /proc/none cannot be written"),
        (("backup", "out", "--keep", "0"), "'0' is not an integer of at least 1"),
        (("restore", "absent"), "absent neither is a backup nor contains one"),
        (("restore", "absent", "--store", "memory"), "one in memory ends here"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    argv: tuple[str, ...],
    message: str,
    data_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is created."""
    monkeypatch.chdir(tmp_path)
    if argv == ("backup", "/proc/none"):
        argv = (*argv, f"--data-dir={data_dir}")

    assert run(*argv) == 2

    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["restore absent", "backup out", "keys list", "audit Radio", "migrate"])
def test_no_command_guesses_between_two_stores(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable names the store of the service, and the option a scratch directory."""
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1")

    assert run(*command.split(), "--data-dir", str(tmp_path)) == 2
    assert "say which one is meant with --store embedded" in capsys.readouterr().err
    assert run("restore", "absent", "--data-dir", str(tmp_path), "--store", "embedded") == 2
    assert "neither is a backup" in capsys.readouterr().err


def test_a_restore_of_one_prefix_counts_its_keys(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A backup has the keys of all installations on the server."""
    for prefix in ("a:", "b:"):
        assert run("keys", "add", "root", "--role", "admin", "--store", f"{valkey_url}?prefix={prefix}") == 0
    store = f"--store={valkey_url}?prefix=a:"
    assert run("backup", str(tmp_path), store) == 0
    capsys.readouterr()

    assert run("restore", str(tmp_path), store, "--replace") == 0

    assert "prefix a: 1 of 4 keys are restored." in capsys.readouterr().out
