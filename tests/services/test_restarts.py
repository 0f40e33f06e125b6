"""Leaving and being renewed: real processes, under requests that do not stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path

import aiohttp
import pytest

from aggregator.runtime import demo
from tests.support.processes import is_alive, the_scheduler
from tests.support.server_fixture import serving

pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]
PACE_S = 0.05  # of each caller: enough requests at every instant, and a processor left for those who start
ROWS = demo.load_rows()


def workers(supervisor: int) -> set[int]:
    """Process ids of the workers below ``supervisor``, and of the process of the scheduled work."""
    listed = subprocess.check_output(["ps", "-ww", "-eo", "pid=,ppid=,args="], text=True)
    rows = (line.split(None, 2) for line in listed.splitlines())
    return {int(pid) for pid, parent, args in rows if int(parent) == supervisor and "spawn_main" in args}


class Crowd:
    """Callers that never pause: half keep their connection, half open one for each request."""

    def __init__(self, url: str, callers: int = 4) -> None:
        self.statuses: list[int] = []
        self.failures: list[str] = []
        self._url = url
        self._stop, self._one_more = asyncio.Event(), asyncio.Event()
        self._callers = callers

    async def __aenter__(self) -> Crowd:
        self._tasks = [asyncio.create_task(self._call(index)) for index in range(self._callers)]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._stop.set()
        await asyncio.gather(*self._tasks)

    async def more(self, requests: int) -> None:
        """Wait for so many answers more."""
        wanted = len(self.statuses) + requests
        async with asyncio.timeout(60):
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
                    async with session.post(self._url + "/v1/articles", json=article) as answer:
                        await answer.read()
                        self.statuses.append(answer.status)
                except (aiohttp.ClientError, OSError) as error:
                    self.failures.append(repr(error))
                self._one_more.set()
                await asyncio.sleep(PACE_S)


async def changed(supervisor: int, before: set[int], size: int) -> set[int]:
    """The processes, once none of ``before`` is left and there are ``size`` again."""
    async with asyncio.timeout(200):  # the process list tells nobody when it changes
        while (now := await asyncio.to_thread(workers, supervisor)) & before or len(now) != size:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return now


@contextlib.asynccontextmanager
async def two_workers(data_dir: Path) -> AsyncIterator[tuple[int, set[int], Crowd]]:
    """Their supervisor, the three processes it has, and callers who have had 50 answers and are waited for at the end."""
    pids: dict[int, str] = {}
    async with (
        serving("--workers=2", pids=pids, data_dir=data_dir, log_level="ERROR") as url,
        Crowd(url) as crowd,
    ):
        (supervisor,) = pids
        before = await changed(supervisor, set(), 3)
        await crowd.more(50)
        yield supervisor, before, crowd


async def test_two_workers_are_renewed_one_after_the_other_without_a_failed_request(tmp_path: Path) -> None:
    """SIGHUP: all process ids are new, that of the scheduled work too, every request meanwhile was answered, on kept and on new connections."""
    async with two_workers(tmp_path) as (supervisor, before, crowd):
        os.kill(supervisor, signal.SIGHUP)
        after = await changed(supervisor, before, 3)
        await crowd.more(50)

    assert len(before) == 3 and not after & before
    assert crowd.failures == []
    assert set(crowd.statuses) <= {200, 201} and len(crowd.statuses) > 100


async def test_a_worker_that_is_ended_by_hand_takes_no_request_with_it(tmp_path: Path) -> None:
    """SIGTERM to one worker: the other one goes on, and another takes its place."""
    async with two_workers(tmp_path) as (supervisor, before, crowd):
        ended = min(before - {await the_scheduler(supervisor)})
        os.kill(ended, signal.SIGTERM)
        await changed(supervisor, {ended}, 3)
        await crowd.more(50)

    assert crowd.failures == []
    assert set(crowd.statuses) <= {200, 201}


@pytest.mark.parametrize("options", [(), ("--workers=2",)], ids=["alone", "workers"])
async def test_open_streams_do_not_hold_up_the_end(tmp_path: Path, options: Sequence[str]) -> None:
    """SIGTERM with open event streams: each ends in order, and so does the service, within 10 s."""
    pids: dict[int, str] = {}
    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(*options, pids=pids, data_dir=tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        streams = [await session.get(url + "/v1/events/stream") for _ in range(5)]
        for stream in streams:
            assert (await stream.content.readline()).startswith(b"retry:")
        started = time.monotonic()
        os.kill(next(iter(pids)), signal.SIGTERM)
        async with asyncio.timeout(10):
            rests = await asyncio.gather(*(stream.content.read() for stream in streams))
            while await asyncio.to_thread(is_alive, next(iter(pids))):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    assert all(b"id: " in rest for rest in rests)
    assert time.monotonic() - started < 10
