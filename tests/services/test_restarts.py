"""Shutdown and restart of processes under continuous requests."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path

import aiohttp
import pytest

from aggregator.runtime import demo
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import children, command_line, is_alive, wait_for_background_process
from tests.support.server_fixture import serving

pytestmark = pytest.mark.services
PAUSE_S = 0.05  # between the requests of a client, to leave processor time for starting processes
ROWS = demo.load_rows()


def workers(supervisor: int) -> set[int]:
    """Process ids of the workers of ``supervisor`` and of its background process."""
    return {pid for pid in children(supervisor) if b"spawn_main" in command_line(pid)}


class Clients:
    """Clients that post continuously: half keep their connection, half open one for each request."""

    def __init__(self, url: str, clients: int = 4) -> None:
        self.statuses: list[int] = []
        self.failures: list[str] = []
        self._url = url
        self._stop, self._one_more = asyncio.Event(), asyncio.Event()
        self._count = clients

    async def __aenter__(self) -> Clients:
        self._tasks = [asyncio.create_task(self._call(index)) for index in range(self._count)]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._stop.set()
        await asyncio.gather(*self._tasks)

    async def more(self, requests: int) -> None:
        """Wait for this many further answers."""
        wanted = len(self.statuses) + requests
        async with asyncio.timeout(HANG_LIMIT_S):
            while len(self.statuses) < wanted and not self.failures:
                self._one_more.clear()
                await self._one_more.wait()

    async def _call(self, index: int) -> None:
        connector = aiohttp.TCPConnector(limit=1, force_close=index % 2 == 0)
        async with aiohttp.ClientSession(connector=connector) as session:
            for number in count():
                if self._stop.is_set():
                    return
                row = ROWS[(index * 7 + number) % len(ROWS)]
                article = {"id": f"{index}-{row['id']}", "title": row["title"], "text": row["text"]}
                try:
                    async with session.post(self._url + "/v1/articles", json=article) as response:
                        await response.read()
                        self.statuses.append(response.status)
                except (aiohttp.ClientError, OSError) as error:
                    self.failures.append(repr(error))
                self._one_more.set()
                await asyncio.sleep(PAUSE_S)


async def changed(supervisor: int, before: set[int], size: int) -> set[int]:
    """Wait until none of ``before`` runs and there are ``size`` processes; their ids."""
    async with asyncio.timeout(HANG_LIMIT_S):
        while (now := workers(supervisor)) & before or len(now) != size:  # noqa: ASYNC110  the process list
            await asyncio.sleep(0.05)
    return now


@contextlib.asynccontextmanager
async def two_workers(data_dir: Path) -> AsyncIterator[tuple[int, set[int], Clients]]:
    """A supervisor, its three processes, and clients that have got 50 answers."""
    pids: dict[int, str] = {}
    async with (
        serving("--workers=2", pids=pids, data_dir=data_dir, log_level="ERROR") as url,
        Clients(url) as clients,
    ):
        (supervisor,) = pids
        before = await changed(supervisor, set(), 3)
        await clients.more(50)
        yield supervisor, before, clients


async def test_a_terminated_worker_fails_no_request(tmp_path: Path) -> None:
    """SIGTERM to one worker: the other continues, and a new one replaces it."""
    async with two_workers(tmp_path) as (supervisor, before, clients):
        ended = min(before - {await wait_for_background_process(supervisor)})
        os.kill(ended, signal.SIGTERM)
        await changed(supervisor, {ended}, 3)
        await clients.more(50)

    assert clients.failures == []
    assert set(clients.statuses) <= {200, 201}


@pytest.mark.parametrize("options", [(), ("--workers=2",)], ids=["alone", "workers"])
async def test_open_event_streams_do_not_delay_the_shutdown(tmp_path: Path, options: Sequence[str]) -> None:
    """SIGTERM with open event streams: each stream ends properly, which no shutdown by force does."""
    pids: dict[int, str] = {}
    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(*options, pids=pids, data_dir=tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        streams = [await session.get(url + "/v1/events/stream") for _ in range(5)]
        for stream in streams:
            assert (await stream.content.readline()).startswith(b"retry:")
        os.kill(next(iter(pids)), signal.SIGTERM)
        async with asyncio.timeout(HANG_LIMIT_S):
            endings = await asyncio.gather(*(stream.content.read() for stream in streams))
            while await asyncio.to_thread(is_alive, next(iter(pids))):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.02)

    assert all(b"id: " in ending for ending in endings)
