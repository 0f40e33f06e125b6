"""A damaged log of the embedded store prevents the start, in one sentence that says what is lost."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from aggregator.errors import ConfigurationError
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.log_checksums import RECORD_NAME, SAVE_INTERVAL_S, LogChecksums
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.stores import direct_client

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


def overwrite(data_dir: Path) -> None:
    """64 random bytes in the middle, within a value: Valkey loads them."""
    content = bytearray(appended(data_dir).read_bytes())
    at = content.index(bytes([30]) * 1000) + 100
    content[at : at + 64] = os.urandom(64)
    appended(data_dir).write_bytes(content)


def flip_bit(data_dir: Path) -> None:
    """One bit of one value."""
    content = bytearray(appended(data_dir).read_bytes())
    content[content.index(bytes([30]) * 1000) + 500] ^= 4
    appended(data_dir).write_bytes(content)


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda d: manifest(d).unlink(), "but no appendonly.aof.manifest, so the store would start empty"),
    (lambda d: shutil.rmtree(d / "appendonlydir"), "is gone, so the store would start empty"),
    (lambda d: appended(d).unlink(), "incr.aof is missing, which appendonly.aof.manifest names"),
    (cut_in_half, r"incr.aof has lost its last [\d,]+ of [\d,]+ bytes, and with them acknowledged articles"),
    (overwrite, r"incr.aof has changed within its first [\d,]+ bytes"),
    (flip_bit, r"incr.aof has changed within its first [\d,]+ bytes"),
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


@pytest.mark.parametrize("damage", [cut_in_half, overwrite, flip_bit])
def test_without_the_record_the_store_starts_with_what_is_left(
    data_dir: Path, damage: Callable[[Path], object]
) -> None:
    """The operator accepts the loss."""
    damage(data_dir)
    (data_dir / RECORD_NAME).unlink()

    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        assert client.dbsize() >= KEYS // 2 - 1
    with EmbeddedServer(data_dir):
        pass


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


def test_a_rewritten_log_is_verified_too(data_dir: Path) -> None:
    """New files replace those of the record; a flip in what was appended since is noticed."""
    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        client.bgrewriteaof()
        until(lambda: "2.base" in manifest(data_dir).read_text())
        until(lambda: len(list(data_dir.glob("appendonlydir/*.incr.aof"))) == 1)
        write(client, "more")
    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        assert client.dbsize() == 2 * KEYS
    flip_bit(data_dir)

    with pytest.raises(ConfigurationError, match="has changed"):
        EmbeddedServer(data_dir).start()


def test_what_a_crash_leaves_is_no_damage(data_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An incomplete command after everything that the record covers: dropped, with a line in the log."""
    caplog.set_level(logging.WARNING, "aggregator.store")
    with open(appended(data_dir), "ab") as log:
        log.write(b"*3\r\n$3\r\nSET\r\n$5\r\nkey50\r\n$10")

    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        assert client.dbsize() == KEYS
        assert "the store dropped an incomplete command at the end of its log: 27 bytes" in caplog.text
        write(client, "more")
    with EmbeddedServer(data_dir) as server, direct_client(server.url) as client:
        assert client.dbsize() == 2 * KEYS


def test_the_record_is_saved_while_the_server_runs(data_dir: Path) -> None:
    """After SIGKILL of everything: what was seen an interval ago is verified, later bytes are not."""
    now_s = [0.0]
    (data_dir / RECORD_NAME).unlink()
    checksums = LogChecksums(data_dir, monotonic=lambda: now_s[0])
    checksums.verify()
    checksums.advance()
    with open(appended(data_dir), "ab") as log:
        log.write(b"*1\r\n$4\r\nPING\r\n")
    now_s[0] = SAVE_INTERVAL_S - 1
    checksums.advance()
    assert not (data_dir / RECORD_NAME).exists()

    now_s[0] = SAVE_INTERVAL_S
    checksums.advance()
    size = appended(data_dir).stat().st_size
    os.truncate(appended(data_dir), size - 14)
    LogChecksums(data_dir).verify()
    os.truncate(appended(data_dir), size - 15)
    with pytest.raises(ConfigurationError, match="has lost its last 1 of"):
        LogChecksums(data_dir).verify()


def test_a_long_file_is_hashed_in_blocks(data_dir: Path) -> None:
    """A file of several blocks that grows across their boundaries gives the hash of the whole file."""
    checksums = LogChecksums(data_dir)
    checksums.verify()
    with open(appended(data_dir), "ab", buffering=0) as log:
        for size in (1, 2**20 - 1, 2**20, 3 * 2**20 + 5):
            log.write(os.urandom(size))
            checksums.advance()
    checksums.finish()

    LogChecksums(data_dir).verify()
    content = bytearray(appended(data_dir).read_bytes())
    content[3 * 2**20] ^= 1
    appended(data_dir).write_bytes(content)
    with pytest.raises(ConfigurationError, match="has changed"):
        LogChecksums(data_dir).verify()


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
