"""The embedded store as long as somebody has it open: it comes back, whatever kept it from that."""

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
from aggregator.store.redis import RedisStore, open_redis_store


async def until(holds: Callable[[], bool]) -> None:
    """Wait for it, a minute at most."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  another process ends, no event tells
            await asyncio.sleep(0.01)


async def test_a_store_that_cannot_be_started_again_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk, or too many open files: said once, and over as soon as that is."""
    monkeypatch.setattr(factory, "RESTART_CHECK_INTERVAL_S", 0.01)
    caplog.set_level(logging.ERROR, "aggregator.store")
    servers: list[EmbeddedServer] = []
    start = EmbeddedServer.start
    monkeypatch.setattr(EmbeddedServer, "start", lambda server: (servers.append(server), start(server)))
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
        await until(lambda: "started again" in caplog.messages[-1])
        store = open_redis_store(settings.store_url)
        await until_ready(store)
        await store.close()

    assert [message.replace(str(tmp_path), "DIR") for message in caplog.messages] == [
        "the embedded store has ended: data_dir: the embedded store on DIR cannot be started (Is a directory); "
        "look at its disk.",
        "the embedded store had ended (signal 9); it was started again",
    ]


async def until_ready(store: RedisStore) -> None:
    """Wait until it has loaded its data."""
    async with asyncio.timeout(60):
        while not (await store.info()).ready:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
