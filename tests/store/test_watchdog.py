"""Watchdog of the embedded store: full disk, log without room for a copy, server that keeps ending."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from aggregator.errors import StoreUnavailable
from aggregator.store import factory
from aggregator.store.base import Put
from aggregator.store.disk import DiskSpace
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.factory import RESTART_BURST, Watchdog
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.small_disk import fill, small_disk
from tests.support.stores import direct_client, open_patient_store

pytestmark = pytest.mark.integration

KILO = b"x" * 1000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 MB."""
    with small_disk(tmp_path / "disk") as directory:
        yield directory


def client_of(server: EmbeddedServer) -> redis.Redis:
    """A plain client; use it as a context manager."""
    return direct_client(server.url)


@pytest.mark.parametrize("appendfsync", ["always", "everysec"])
def test_a_disk_that_is_filled_at_once_does_not_end_the_server(disk: Path, appendfsync: str) -> None:
    """The first thousand writes after it use allocated space; the next check refuses writes."""
    with EmbeddedServer(disk / "data", appendfsync) as server, client_of(server) as client:
        guard = Watchdog(server)
        client.set("before", KILO)
        guard.check_disk()
        pid, other = server.pid, fill(disk)
        for number in range(1000):
            client.set(f"key{number}", KILO)

        guard.check_disk()
        with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
            client.set("refused", KILO)
        assert client.get("key999") == KILO

        other.unlink()
        guard.check_disk()
        assert client.set("after", KILO)
        assert client.config_get("appendfsync") == {"appendfsync": appendfsync}
        assert server.pid == pid
    with EmbeddedServer(disk / "data", appendfsync) as server, client_of(server) as client:
        assert client.dbsize() == 1002


async def test_refused_writes_name_the_disk(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In errors, in ``info`` and once in the log; the end is logged too."""
    caplog.set_level(logging.WARNING, "aggregator.store")
    with EmbeddedServer(disk / "data") as server:
        store = open_patient_store(server.url)
        await store.check()
        await store.put([Put(b"a", b"x")])
        guard, other = Watchdog(server), fill(disk)
        guard.check_disk()
        guard.check_disk()
        with pytest.raises(StoreUnavailable, match=f"The disk of {disk / 'data'} is full: 0.0 MB free"):
            await store.put([Put(b"b", b"x")])
        assert await store.read([b"a"]) == [b"x"]
        info = await store.info()
        assert info.problem is not None and f"The disk of {disk / 'data'} is full" in info.problem

        other.unlink()
        guard.check_disk()
        await store.put([Put(b"b", b"x")])
        assert (await store.info()).ready
        await store.close()
    assert [message.split(":")[0].replace(str(disk), "DISK") for message in caplog.messages] == [
        "The disk of DISK/data is full",
        "the disk of DISK/data has space again",
    ]


async def test_a_server_starts_readable_on_a_full_disk(disk: Path) -> None:
    """Whoever opens the store succeeds; writes are refused from the start."""
    with EmbeddedServer(disk / "data", "always") as server, client_of(server) as client:
        client.set("a", "x")
    fill(disk)
    with EmbeddedServer(disk / "data", "always") as server:
        store = open_patient_store(server.url)
        await store.check()
        assert await store.read([b"a"]) == [b"x"]
        with pytest.raises(StoreUnavailable, match="is full"):
            await store.put([Put(b"b", b"x")])
        await store.close()


def test_a_server_that_exits_on_a_full_disk_is_restarted_once(
    disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without allocated space: the log names the disk, and the restarted server is readable and stays."""
    caplog.set_level(logging.ERROR, "aggregator.store")
    with EmbeddedServer(disk / "data", "always") as server:
        with client_of(server) as client:
            client.set("a", "x")
            fill(disk)
            with pytest.raises(redis.ConnectionError):
                while True:
                    client.set("b", KILO)
        guard = Watchdog(server)
        _until_dead(server)
        guard.restart_if_dead()
        assert "is full: 0.0 MB free" in caplog.messages[0]
        assert "overcommit" not in caplog.messages[0]
        pid = server.pid
        _until_answers(server)
        with client_of(server) as client:
            assert client.get("a") == b"x"
            with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
                client.set("b", KILO)
        guard.restart_if_dead()
        assert server.pid == pid


async def test_a_log_without_room_for_a_copy_is_not_rewritten(
    disk: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A rewrite would fill the disk; reported in ``info`` and once in the log, until there is room."""
    monkeypatch.setattr(factory, "MIN_REWRITE_BYTES", 2**20)
    caplog.set_level(logging.WARNING, "aggregator.store")
    with EmbeddedServer(disk / "data") as server, client_of(server) as client:
        guard = Watchdog(server)
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(12 * 2**20))
        for number in range(7000):
            client.set(f"key{number}", KILO)
        store = open_patient_store(server.url)

        guard.check_disk()
        guard.check_disk()
        assert client.config_get("auto-aof-rewrite-percentage") == {"auto-aof-rewrite-percentage": "0"}
        info = await store.info()
        assert info.ready and info.warning is not None and "cannot be rewritten" in info.warning

        ballast.unlink()
        guard.check_disk()
        assert client.config_get("auto-aof-rewrite-percentage") == {"auto-aof-rewrite-percentage": "100"}
        assert (await store.info()).warning is None
        await store.close()
    assert ["cannot be rewritten" in m for m in caplog.messages] == [True, False]


async def test_a_rewrite_that_failed_is_reported(disk: Path) -> None:
    """One that the operator started, on a disk without room for it."""
    with EmbeddedServer(disk / "data") as server, client_of(server) as client:
        for number in range(8000):
            client.set(f"key{number}", os.urandom(1000))
        other = fill(disk)
        os.truncate(other, other.stat().st_size - 2**21)
        client.bgrewriteaof()
        while client.info("persistence")["aof_rewrite_in_progress"]:  # noqa: ASYNC110  no event
            await asyncio.sleep(0.01)
        store = open_patient_store(server.url)
        info = await store.info()
        assert info.warning is not None and "could not rewrite its append-only file" in info.warning
        await store.close()


def test_a_server_that_keeps_ending_is_not_restarted_each_second(tmp_path: Path) -> None:
    """After a burst of restarts the next one waits until the first is a minute ago."""
    now_s = [0.0]
    with EmbeddedServer(tmp_path / "data") as server:
        restarts: list[float] = []
        guard = Watchdog(server, lambda: restarts.append(now_s[0]), lambda: now_s[0])
        for _ in range(RESTART_BURST):
            _kill(server)
            guard.restart_if_dead()
            assert server.pid is not None
        assert len(restarts) == RESTART_BURST
        _kill(server)
        now_s[0] = 59.0
        guard.restart_if_dead()
        assert server.pid is None
        now_s[0] = 60.0
        guard.restart_if_dead()
        assert server.pid is not None


def test_the_marks_of_the_test_disk_are_relative() -> None:
    """The tests above rely on it."""
    assert DiskSpace(Path("d"), 0, 24 * 2**20).low_bytes < 2 * 2**20


def _kill(server: EmbeddedServer) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    _until_dead(server)


def _until_dead(server: EmbeddedServer) -> None:
    while server.pid is not None:
        time.sleep(0.001)


def _until_answers(server: EmbeddedServer) -> None:
    deadline_s = time.monotonic() + HANG_LIMIT_S
    while time.monotonic() < deadline_s:
        try:
            with client_of(server) as client:
                client.get("a")
                return
        except (redis.ConnectionError, redis.BusyLoadingError):
            time.sleep(0.005)
    raise AssertionError("no reply")
