"""Log of the embedded store: the end that a power loss leaves is cut; damage prevents the start."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import redis

from aggregator.errors import ConfigurationError
from aggregator.store.append_log import RECORD_NAME, SAVE_INTERVAL_S, TAIL_PREFIX, AppendLog, main
from aggregator.store.embedded import EmbeddedServer
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.stores import direct_client

pytestmark = pytest.mark.integration

KEYS = 60


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The data of a stopped store with 60 keys of 1 kB."""
    directory = tmp_path / "store"
    with EmbeddedServer(directory) as server, direct_client(server.url) as client:
        write(client, "key")
    return directory


def write(client: redis.Redis, prefix: str) -> None:
    """60 keys of 1 kB, one command each."""
    for number in range(KEYS):
        client.set(f"{prefix}{number}", bytes([number]) * 1000)


def appended(data_dir: Path) -> Path:
    """The file that is appended to."""
    (path,) = data_dir.glob("appendonlydir/*.incr.aof")
    return path


def manifest(data_dir: Path) -> Path:
    """The list of the log's files."""
    return data_dir / "appendonlydir" / "appendonly.aof.manifest"


def cut_in_half(data_dir: Path) -> None:
    """As a damaged file system or an interrupted copy leaves it."""
    os.truncate(appended(data_dir), appended(data_dir).stat().st_size // 2)


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda d: manifest(d).unlink(), "but no appendonly.aof.manifest, so the store would start empty"),
    (lambda d: shutil.rmtree(d / "appendonlydir"), "is gone, so the store would start empty"),
    (lambda d: appended(d).unlink(), "incr.aof is missing, which appendonly.aof.manifest names"),
    (cut_in_half, r"incr.aof has lost its last [\d,]+ of [\d,]+ bytes, and with them acknowledged articles"),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES)
def test_a_damaged_log_prevents_the_start(
    data_dir: Path, damage: Callable[[Path], object], sentence: str
) -> None:
    """Valkey itself would start, empty or with what it can read. The sentence names the remedy."""
    damage(data_dir)

    with pytest.raises(ConfigurationError, match=sentence) as caught:
        EmbeddedServer(data_dir).start()
    assert "restore a backup" in str(caught.value)


def test_the_module_as_a_command_accepts_the_loss(data_dir: Path) -> None:
    """As the sentence says: the store starts with what is left, on a machine with this package alone."""
    cut_in_half(data_dir)
    done = subprocess.run(
        [sys.executable, "-m", "aggregator.store.append_log", str(data_dir)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "starts with what can be read" in done.stdout
    assert "they were cut off" in done.stderr

    for _ in range(2):
        with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
            assert client.dbsize() >= KEYS // 2 - 1


def test_the_module_as_a_command_cuts_damage_that_the_server_reports(data_dir: Path) -> None:
    """Other bytes between two commands: what follows them is lost, and kept in a file."""
    content = appended(data_dir).read_bytes()
    at = content.index(b"*3", len(content) // 2)
    appended(data_dir).write_bytes(content[:at] + b"rubbish" + content[at + 7 :])
    with pytest.raises(ConfigurationError, match=r"is damaged \(Bad file format.*restore a backup"):
        EmbeddedServer(data_dir).start()
    with pytest.raises(ConfigurationError, match=r"incr.aof has bytes that .*restore a backup"):
        AppendLog(data_dir).verify()

    main(data_dir)
    AppendLog(data_dir).verify()
    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        assert KEYS // 2 - 2 <= client.dbsize() < KEYS
    (kept,) = data_dir.glob(f"{TAIL_PREFIX}*")
    assert kept.read_bytes().startswith(b"rubbish")


def test_a_store_in_use_is_not_cut(data_dir: Path) -> None:
    """The command takes the locks of a service."""
    with EmbeddedServer(data_dir), pytest.raises(ConfigurationError, match="is in use"):
        main(data_dir)


HALF_A_COMMAND = b"*3\r\n$3\r\nSET\r\n$5\r\nkey50\r\n$10"
HALF_A_TRANSACTION = b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$1\r\nx\r\n"
TAILS = [
    HALF_A_COMMAND,
    bytes(1),
    bytes(4096),
    bytes(9000),
    HALF_A_COMMAND + bytes(100),
    HALF_A_COMMAND + b"\r\nval" + bytes(5000),
    HALF_A_TRANSACTION,
    HALF_A_TRANSACTION + HALF_A_COMMAND + bytes(3),
    b"*",
    b"*3\r\n$3\r\nSET\r\n",
]


@pytest.mark.parametrize("tail", TAILS)
def test_the_end_that_a_power_loss_leaves_is_cut_and_kept(
    data_dir: Path, tail: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """An incomplete command or transaction, zeros, or both: with a sentence; all before it is there."""
    caplog.set_level(logging.WARNING, "aggregator.store")
    with open(appended(data_dir), "ab") as log:
        log.write(tail)

    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        assert client.dbsize() == KEYS
        write(client, "more")
    (message,) = caplog.messages
    assert f"ended with {len(tail)} bytes that are no complete command" in message
    (kept,) = data_dir.glob(f"{TAIL_PREFIX}*")
    assert kept.read_bytes() == tail
    assert str(kept) in message
    assert kept.stat().st_mode & 0o077 == 0
    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        assert client.dbsize() == 2 * KEYS


@pytest.mark.parametrize("recorded", [0, 1, 40, 1000, "argument", "number", "command", None])
def test_a_cut_depends_on_no_record(data_dir: Path, recorded: int | str | None) -> None:
    """Also if the recorded length is within a command, at any of its parts."""
    size, content = appended(data_dir).stat().st_size, appended(data_dir).read_bytes()
    if isinstance(recorded, str):
        part = {"argument": b"$1000", "number": b"1000\r\n", "command": b"*3\r\n"}[recorded]
        recorded = content.index(part, len(content) // 2)
    if recorded is None:
        (data_dir / RECORD_NAME).unlink()
    else:
        (data_dir / RECORD_NAME).write_bytes(msgspec.json.encode({appended(data_dir).name: recorded}))
    AppendLog(data_dir).prepare()
    assert appended(data_dir).stat().st_size == size
    with open(appended(data_dir), "ab") as log:
        log.write(HALF_A_COMMAND + bytes(7))

    AppendLog(data_dir).prepare()
    assert appended(data_dir).stat().st_size == size


def test_a_log_whose_recorded_part_became_zeros_is_damage(data_dir: Path) -> None:
    """It is not cut: acknowledged articles are lost."""
    size = appended(data_dir).stat().st_size
    os.truncate(appended(data_dir), size - 500)
    os.truncate(appended(data_dir), size + 500)

    with pytest.raises(ConfigurationError, match="has lost its last"):
        EmbeddedServer(data_dir).start()
    assert appended(data_dir).stat().st_size == size + 500


@pytest.mark.parametrize("cut_bytes", [1, 13, 37, 1030, 3000])
def test_any_cut_after_the_recorded_length_is_repaired(data_dir: Path, cut_bytes: int) -> None:
    """The store starts with the complete commands."""
    (data_dir / RECORD_NAME).unlink()
    os.truncate(appended(data_dir), appended(data_dir).stat().st_size - cut_bytes)

    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        assert client.dbsize() == KEYS - 1 - cut_bytes // 1040


def test_a_killed_server_is_restarted_on_a_repaired_log(data_dir: Path) -> None:
    """Also while the service runs."""
    with EmbeddedServer(data_dir) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: server.pid is None)
        with open(appended(data_dir), "ab") as log:
            log.write(bytes(4096))
        assert server.restart_if_dead() == "signal 9"
        until(lambda: _answers(server))
        with direct_client(server.url) as client:
            assert client.dbsize() == KEYS


def _answers(server: EmbeddedServer) -> bool:
    try:
        with direct_client(server.url) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def test_an_earlier_log_in_a_newer_store_is_noticed(data_dir: Path, tmp_path: Path) -> None:
    """A backup of the log that replaces a rewritten one; restoring the whole directory is not damage."""
    shutil.copytree(data_dir / "appendonlydir", tmp_path / "backup")
    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        client.bgrewriteaof()
        until(lambda: "2.base" in manifest(data_dir).read_text())
        write(client, "more")
    shutil.rmtree(data_dir / "appendonlydir")
    shutil.copytree(tmp_path / "backup", data_dir / "appendonlydir")

    with pytest.raises(ConfigurationError, match="is another log"):
        EmbeddedServer(data_dir).start()


def test_the_record_is_saved_while_the_server_runs(data_dir: Path) -> None:
    """After SIGKILL of everything: what was seen an interval ago is verified, later bytes are not."""
    now_s = [0.0]
    (data_dir / RECORD_NAME).unlink()
    written = AppendLog(data_dir, monotonic=lambda: now_s[0])
    written.prepare()
    written.record()
    with open(appended(data_dir), "ab") as log:
        log.write(b"*1\r\n$4\r\nPING\r\n")
    now_s[0] = SAVE_INTERVAL_S - 1
    written.record()
    assert not (data_dir / RECORD_NAME).exists()

    now_s[0] = SAVE_INTERVAL_S
    written.record()
    size = appended(data_dir).stat().st_size
    os.truncate(appended(data_dir), size - 14)
    AppendLog(data_dir).check()
    os.truncate(appended(data_dir), size - 15)
    with pytest.raises(ConfigurationError, match="has lost its last 1 of"):
        AppendLog(data_dir).check()


def test_an_unreadable_record_is_reported_and_not_used(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A power loss may leave it empty; that must not prevent the start."""
    (data_dir / RECORD_NAME).write_bytes(b"")

    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        assert client.dbsize() == KEYS
    assert "is not verified" in caplog.text


def test_a_first_start_that_was_interrupted_is_repeated(tmp_path: Path) -> None:
    """A small base file without a manifest holds nothing."""
    directory = tmp_path / "store"
    with EmbeddedServer(directory):
        pass
    manifest(directory).unlink()
    (directory / RECORD_NAME).unlink()

    with EmbeddedServer(directory) as server, direct_client(server.url) as client:
        assert client.ping()


def test_a_running_store_is_not_restarted_without_its_files(data_dir: Path) -> None:
    """The manifest vanished and the server died: it must not come back empty."""
    with EmbeddedServer(data_dir) as server:
        manifest(data_dir).rename(data_dir / "manifest")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: server.pid is None)
        with pytest.raises(ConfigurationError, match="would start empty"):
            server.restart_if_dead()
        (data_dir / "manifest").rename(manifest(data_dir))
        assert server.restart_if_dead() == "signal 9"


def until(holds: Callable[[], bool]) -> None:
    """Poll until a condition holds, for at most 30 s."""
    deadline_s = time.monotonic() + HANG_LIMIT_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
