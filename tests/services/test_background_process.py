"""The process of the scheduled work: killed, left alone, told to stop, not able to start. Requests go on, events are told once."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import redis.asyncio as redis

from aggregator.background.scheduler import DETECTOR_LEASE_KEY
from aggregator.domain import IndexLayout
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection import BurstRule
from aggregator.events.repository import EventRepository
from aggregator.http.metrics.multiprocess import SINGLE_PROCESS, PeerMetrics
from aggregator.index import Index
from aggregator.runtime import background_process as module
from aggregator.runtime.background_process import BackgroundProcess
from aggregator.settings import Settings
from aggregator.store.redis import open_redis_store
from tests.support.factories import story
from tests.support.processes import is_alive, the_scheduler
from tests.support.server_fixture import serving

pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]
REPORTS = 20
PATIENCE_S = 60


class Site:
    """A service, the store behind it, and a matter that is reported on."""

    def __init__(self, session: aiohttp.ClientSession, store: redis.Redis, url: str, pid: int) -> None:
        self.session, self.store, self.url, self.pid = session, store, url, pid
        self.statuses: list[int] = []

    async def report(self, numbers: range) -> None:
        """The same headline words, each with a text of its own."""
        subject = " ".join(story(1000, 1).split()[:4])
        for n in numbers:
            text = f"{subject} {subject}. {story(100 + n, 3)}"
            body = {"id": f"r{n}", "title": f"{subject} {n}", "text": text, "lang": "eo"}
            async with self.session.post(f"{self.url}/v1/articles", json=body) as answer:
                self.statuses.append(answer.status)

    async def leader(self) -> int:
        """The process that holds the detector's lease, as soon as one does."""
        async with asyncio.timeout(PATIENCE_S):
            while (token := await self.store.get(DETECTOR_LEASE_KEY)) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return int(token.partition(b":")[0])

    async def until_read(self, articles: int) -> None:
        """The event has so many."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                async with self.session.get(f"{self.url}/v1/events") as answer:
                    events = (await answer.json())["events"]
                if sum(event["size"] for event in events) >= articles:
                    return
                await asyncio.sleep(0.05)

    async def page(self, path: str) -> str:
        """What stands there."""
        async with self.session.get(self.url + path) as answer:
            return await answer.text()


@asynccontextmanager
async def site(store_url: str, *options: str) -> AsyncIterator[Site]:
    """Ended by SIGTERM if nobody did before."""
    pids: dict[int, str] = {}
    async with (
        serving(*options, store_url=store_url, pids=pids, log_level="ERROR") as url,
        aiohttp.ClientSession() as session,
        redis.Redis.from_url(store_url) as store,
    ):
        yield Site(session, store, url, next(iter(pids)))


async def fired(store_url: str) -> Counter[str]:
    """How often each event was told as fired."""
    store = open_redis_store(store_url)
    try:
        changes = await EventRepository(store).changes(count=1000)
    finally:
        await store.close()
    return Counter(record.event_id for _, record in changes if record.kind == "fired")


@pytest.mark.parametrize("options", [(), ("--workers=2",)], ids=["alone", "workers"])
async def test_when_it_is_killed_another_one_goes_on_and_nobody_notices(
    valkey_url: str, options: Sequence[str]
) -> None:
    """In the midst of a story: each article is taken, the event fires once; metrics and health page tell of the new one."""
    async with site(valkey_url, *options) as here:
        first = await the_scheduler(here.pid)
        assert await here.leader() == first
        await here.report(range(REPORTS // 2))
        os.kill(first, signal.SIGKILL)
        await here.report(range(REPORTS // 2, REPORTS))
        await here.until_read(REPORTS)
        second = await here.leader()
        metrics, health = await here.page("/metrics"), await here.page("/health")

    assert set(here.statuses) == {201} and len(here.statuses) == REPORTS
    assert second != first
    assert list((await fired(valkey_url)).values()) == [1]
    assert 'aggregator_leader{worker="scheduler"} 1.0' in metrics
    assert "running, last tick" in health


async def test_when_its_service_is_killed_it_leaves_and_gives_the_lease_back(valkey_url: str) -> None:
    """SIGKILL of the parent: no orphan goes on, and another replica need not wait for the lease to run out."""
    async with site(valkey_url) as here:
        scheduler = await the_scheduler(here.pid)
        assert await here.leader() == scheduler
        os.kill(here.pid, signal.SIGKILL)
        async with asyncio.timeout(10):
            while is_alive(scheduler):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

        assert await here.store.get(DETECTOR_LEASE_KEY) is None


async def test_a_service_that_stops_hands_over(valkey_url: str) -> None:
    """SIGTERM: what was read is saved, so that nobody need read it again, and the lease is free at once."""
    async with site(valkey_url) as here:
        scheduler = await the_scheduler(here.pid)
        await here.report(range(REPORTS))
        await here.until_read(REPORTS)
        spaces = json.loads(await here.page("/readyz"))["spaces"]
        await here.report(range(REPORTS, REPORTS + 4))
        async with asyncio.timeout(PATIENCE_S):
            read = f'detector_articles_total{{worker="scheduler"}} {REPORTS + 4}.0'
            while read not in await here.page("/metrics"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        os.kill(here.pid, signal.SIGTERM)
        async with asyncio.timeout(10):
            while is_alive(here.pid):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

        assert not is_alive(scheduler)
        assert await here.store.get(DETECTOR_LEASE_KEY) is None
        store = open_redis_store(valkey_url)
        assert await DetectorRunner(EventRepository(store), BurstRule()).lag(Index(store, spaces), 100) == 0
        await store.close()


async def test_one_that_cannot_work_is_tried_again_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, free_port: int
) -> None:
    """A line each time, a longer pause before each attempt, and an end when asked for."""
    monkeypatch.setattr(module, "RESTART_DELAY_S", 0.01)
    caplog.set_level(logging.ERROR, "aggregator.scheduler")
    stop = asyncio.Event()
    settings = Settings(store_url=f"redis://127.0.0.1:{free_port}")
    keeping = asyncio.create_task(
        BackgroundProcess(settings, PeerMetrics(tmp_path, SINGLE_PROCESS)).supervise(
            IndexLayout(("xx.0",), "4x16", {}), stop
        )
    )
    async with asyncio.timeout(PATIENCE_S):
        while len(caplog.messages) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    stop.set()
    await keeping

    assert caplog.messages[:2] == [
        f"the background process ended with code 3; restarting it in {pause} s" for pause in ("0.02", "0.04")
    ]
