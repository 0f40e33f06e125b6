"""The watchdog of the embedded store restarts a dead server and retries failed restarts."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from aggregator.settings import Settings
from aggregator.store import factory
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import RedisStore
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.small_disk import fill, small_disk
from tests.support.stores import direct_client, open_patient_store

pytestmark = pytest.mark.integration


async def until(holds: Callable[[], bool]) -> None:
    """Poll until a condition holds, for at most 60 s."""
    async with asyncio.timeout(HANG_LIMIT_S):
        while not holds():  # noqa: ASYNC110  waits for another process
            await asyncio.sleep(0.01)


async def test_a_failed_restart_is_retried_and_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """For example on a full disk: one log line for the failure, one for the restart."""
    monkeypatch.setattr(factory, "CHECK_INTERVAL_S", 0.01)
    caplog.set_level(logging.ERROR, "aggregator.store")
    servers: list[EmbeddedServer] = []
    start = EmbeddedServer.start

    def record_and_start(server: EmbeddedServer) -> None:
        servers.append(server)
        start(server)

    monkeypatch.setattr(EmbeddedServer, "start", record_and_start)
    async with factory.with_store_url(Settings(data_dir=str(tmp_path))) as settings:
        pid = servers[0].pid
        assert pid is not None
        (tmp_path / "server.log").rename(tmp_path / "before")
        (tmp_path / "server.log").mkdir()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: bool(caplog.messages))
        for _ in range(5):
            await asyncio.sleep(0.01)
        (tmp_path / "server.log").rmdir()
        await until(lambda: "restarted" in caplog.messages[-1])
        store = open_patient_store(settings.store_url)
        await until_ready(store)
        await store.close()

    assert [message.replace(str(tmp_path), "DIR") for message in caplog.messages] == [
        "the embedded store has ended: data_dir: the embedded store on DIR cannot be started "
        "(Is a directory); check its disk.",
        "the embedded store had ended (signal 9); it was restarted",
    ]


async def until_ready(store: RedisStore) -> None:
    """Poll until the server has loaded its data."""
    async with asyncio.timeout(HANG_LIMIT_S):
        while not (await store.info()).ready:  # noqa: ASYNC110  waits for another process
            await asyncio.sleep(0.01)


async def test_the_log_has_space_allocated_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a disk that fills before the first check does not end a server with ``appendfsync always``."""
    monkeypatch.setattr(factory, "CHECK_INTERVAL_S", HANG_LIMIT_S)
    with small_disk(tmp_path / "disk") as disk:
        settings = Settings(data_dir=str(disk / "data"), appendfsync="always")
        async with factory.with_store_url(settings) as located:
            fill(disk)
            with direct_client(located.store_url) as client:
                for number in range(500):
                    client.set(f"key{number}", b"x" * 1000)
