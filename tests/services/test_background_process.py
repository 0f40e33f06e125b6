"""Background process: killed, orphaned, stopped, unable to start. Each event is reported once."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import redis.asyncio as redis

from aggregator.background.tasks import DETECTOR_LEASE_KEY
from aggregator.domain import IndexLayout
from aggregator.events.consumer import DetectorRunner
from aggregator.events.detection.model import BurstRule
from aggregator.events.repository import EventRepository
from aggregator.http.peer_metrics import RestartCounts
from aggregator.index import Index
from aggregator.runtime import processes
from aggregator.runtime.background_process import keep_background_running
from aggregator.settings import Settings
from tests.support.factories import story
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import is_alive, wait_for_background_process
from tests.support.server_fixture import serving
from tests.support.stores import direct_async_client, open_patient_store

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("without_analysis_processes")]
REPORTS = 20


class Site:
    """A service, its store, and reports on one story."""

    def __init__(self, session: aiohttp.ClientSession, store: redis.Redis, url: str, pid: int) -> None:
        self.session, self.store, self.url, self.pid = session, store, url, pid
        self.statuses: list[int] = []

    async def report(self, numbers: range) -> None:
        """Post articles with the same headline words and different texts."""
        subject = " ".join(story(1000, 1).split()[:4])
        for n in numbers:
            text = f"{subject} {subject}. {story(100 + n, 3)}"
            body = {"id": f"r{n}", "title": f"{subject} {n}", "text": text, "lang": "eo"}
            body["source"] = f"Outlet {n}"  # on the first day, reports without one need more in common
            async with self.session.post(f"{self.url}/v1/articles", json=body) as response:
                self.statuses.append(response.status)

    async def leader(self) -> int:
        """Wait until a process holds the detector's lease; its id."""
        async with asyncio.timeout(HANG_LIMIT_S):
            while (token := await self.store.get(DETECTOR_LEASE_KEY)) is None:  # noqa: ASYNC110  another process
                await asyncio.sleep(0.01)
        return _process_id(token)

    async def until_read(self, articles: int) -> None:
        """Wait until the events have this many items."""
        async with asyncio.timeout(HANG_LIMIT_S):
            while True:
                async with self.session.get(f"{self.url}/v1/events") as response:
                    events = (await response.json())["events"]
                if sum(event["size"] for event in events) >= articles:
                    return
                await asyncio.sleep(0.05)

    async def until_shown(self, path: str, text: str) -> None:
        """Wait until a page has this text: it shows a new leader after its first tick."""
        async with asyncio.timeout(HANG_LIMIT_S):
            while text not in await self.page(path):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.05)

    async def page(self, path: str) -> str:
        """The body of a GET request."""
        async with self.session.get(self.url + path) as response:
            return await response.text()


def _process_id(token: bytes | str) -> int:
    """The process that a lease token names; the client does not decode answers."""
    assert isinstance(token, bytes)
    return int(token.partition(b":")[0])


@asynccontextmanager
async def site(store_url: str, *options: str) -> AsyncIterator[Site]:
    """A service on a store; SIGTERM ends it."""
    pids: dict[int, str] = {}
    async with (
        serving(*options, store_url=store_url, pids=pids, log_level="ERROR") as url,
        aiohttp.ClientSession() as session,
        direct_async_client(store_url) as store,
    ):
        yield Site(session, store, url, next(iter(pids)))


async def fired(store_url: str) -> Counter[str]:
    """How often each event was reported as fired."""
    store = open_patient_store(store_url)
    try:
        changes = await EventRepository(store).changes(count=1000)
    finally:
        await store.close()
    return Counter(record.event_id for _, record in changes if record.kind == "fired")


async def assert_a_killed_process_is_replaced(here: Site, store_url: str) -> int:
    """SIGKILL during a story: all articles are accepted, the event fires once, metrics continue.

    Returns the id of the new process.
    """
    first = await wait_for_background_process(here.pid)
    assert await here.leader() == first
    await here.report(range(REPORTS // 2))
    os.kill(first, signal.SIGKILL)
    await here.report(range(REPORTS // 2, REPORTS))
    await here.until_read(REPORTS)
    second = await here.leader()
    await here.until_shown("/health", "Running, last run")
    # A process that gets no processor for three intervals can lose the lease until its next tick.
    await here.until_shown("/metrics", 'aggregator_leader{worker="scheduler"} 1.0')
    metrics = await here.page("/metrics")

    assert set(here.statuses) == {201} and len(here.statuses) == REPORTS
    assert second != first
    assert list((await fired(store_url)).values()) == [1]
    assert 'aggregator_process_restarts_total{worker="supervisor",process="background"} 1.0' in metrics
    return second


async def test_a_killed_process_of_several_workers_is_replaced_without_effect_on_requests(
    valkey_url: str,
) -> None:
    """The supervisor starts it again."""
    async with site(valkey_url, "--workers=2") as here:
        await assert_a_killed_process_is_replaced(here, valkey_url)


async def test_a_killed_process_is_replaced_and_the_next_exits_with_its_service(valkey_url: str) -> None:
    """Then SIGKILL of the parent: another replica need not wait until the lease expires."""
    async with site(valkey_url) as here:
        process = await assert_a_killed_process_is_replaced(here, valkey_url)
        assert process == await wait_for_background_process(here.pid)
        os.kill(here.pid, signal.SIGKILL)
        async with asyncio.timeout(HANG_LIMIT_S):
            while is_alive(process):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.02)

        assert await here.store.get(DETECTOR_LEASE_KEY) is None


async def test_a_stopping_service_saves_its_position_and_releases_the_lease(valkey_url: str) -> None:
    """SIGTERM: the next detector does not read the same articles again."""
    async with site(valkey_url) as here:
        process = await wait_for_background_process(here.pid)
        await here.report(range(REPORTS))
        await here.until_read(REPORTS)
        spaces = json.loads(await here.page("/readyz"))["spaces"]
        await here.report(range(REPORTS, REPORTS + 4))
        async with asyncio.timeout(HANG_LIMIT_S):
            read = f'detector_articles_total{{worker="scheduler"}} {REPORTS + 4}.0'
            while read not in await here.page("/metrics"):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.05)
        os.kill(here.pid, signal.SIGTERM)
        async with asyncio.timeout(HANG_LIMIT_S):
            while is_alive(here.pid):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.02)

        assert not is_alive(process)
        assert await here.store.get(DETECTOR_LEASE_KEY) is None
        store = open_patient_store(valkey_url)
        detector = DetectorRunner(EventRepository(store), BurstRule())
        assert await detector.lag(Index(store, spaces).stream, 100) == 0
        await store.close()


async def test_a_process_that_cannot_start_is_retried_with_doubling_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, free_port: int
) -> None:
    """Each failure is logged; setting ``stop`` ends the attempts."""
    monkeypatch.setattr(processes, "FIRST_PAUSE_S", 0.01)
    caplog.set_level(logging.ERROR, "aggregator.processes")
    stop = asyncio.Event()
    settings = Settings(store_url=f"redis://127.0.0.1:{free_port}")
    supervising = asyncio.create_task(
        keep_background_running(settings, IndexLayout(("xx.0",)), tmp_path, RestartCounts(), stop)
    )
    async with asyncio.timeout(HANG_LIMIT_S):
        while len(caplog.messages) < 2:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.02)
    stop.set()
    await supervising

    for message, pause in zip(caplog.messages[:2], ("0.01", "0.02"), strict=True):
        assert message.startswith(
            f"the background process ended with code 3: The store at 127.0.0.1:{free_port} cannot be reached"
        )
        assert message.endswith(f"; starting another one in {pause} s")


async def test_a_process_that_is_killed_during_its_start_is_replaced(
    valkey_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times in sequence, as soon as it exists; the fourth becomes the leader."""
    monkeypatch.setattr(processes, "FIRST_PAUSE_S", 0.01)
    stop, restarts = asyncio.Event(), RestartCounts()
    supervising = asyncio.create_task(
        keep_background_running(
            Settings(store_url=valkey_url), IndexLayout(("xx.0",)), tmp_path, restarts, stop
        )
    )
    killed: set[int] = set()
    leader: bytes | str = b""
    async with asyncio.timeout(HANG_LIMIT_S), direct_async_client(valkey_url) as store:
        while len(killed) < 3:
            for child in multiprocessing.active_children():
                if child.name == "aggregator-scheduler" and child.pid not in {None, *killed}:
                    child.kill()
                    killed.add(child.pid or 0)
            await asyncio.sleep(0.005)
        while not leader:
            leader = await store.get(DETECTOR_LEASE_KEY) or b""
            await asyncio.sleep(0.02)
    stop.set()
    await supervising

    assert _process_id(leader) not in killed
    assert b'{process="background"} 3.0' in await restarts.render()
