"""Workers that are killed, and killed again while they are replaced: the service stays and recovers."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path

import aiohttp
import pytest

from aggregator.store.embedded import EmbeddedServer
from tests.services.test_restarts import changed, two_workers, workers
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import is_alive, wait_for_background_process
from tests.support.server_fixture import SERVE, ready

pytestmark = pytest.mark.services


async def new_worker(supervisor: int, known: set[int]) -> int:
    """Wait until a process was started that is not in ``known``."""
    async with asyncio.timeout(HANG_LIMIT_S):
        while not (new := workers(supervisor) - known):  # noqa: ASYNC110  another process
            await asyncio.sleep(0.01)
    return min(new)


async def test_a_replacement_that_is_killed_during_its_start_is_replaced_too(tmp_path: Path) -> None:
    """As an out-of-memory killer does, twice in sequence: the other worker keeps serving."""
    async with two_workers(tmp_path) as (supervisor, before, clients):
        killed = {min(before - {await wait_for_background_process(supervisor)})}
        os.kill(min(killed), signal.SIGKILL)
        for _ in range(2):
            replacement = await new_worker(supervisor, before | killed)
            os.kill(replacement, signal.SIGKILL)
            killed.add(replacement)
        posted = len(clients.statuses)
        clients.failures.clear()  # requests that the first killed worker had accepted
        after = await changed(supervisor, killed, 3)
        await clients.more(50)

    assert before - killed < after
    assert clients.failures == []
    assert set(clients.statuses[posted:]) <= {200, 201}


async def test_all_workers_killed_at_once_are_replaced(tmp_path: Path) -> None:
    """The supervisor keeps the socket: no connection is refused, and the new workers answer."""
    async with two_workers(tmp_path) as (supervisor, before, clients):
        killed = before - {await wait_for_background_process(supervisor)}
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        await new_worker(supervisor, before)
        refused = [failure for failure in clients.failures if "ConnectorError" in failure]
        clients.failures.clear()
        await clients.more(50)

    assert refused == [] and clients.failures == []
    assert set(clients.statuses) <= {200, 201}


async def logged(stderr: asyncio.StreamReader, pattern: bytes) -> None:
    """Wait for a line of the log."""
    async with asyncio.timeout(HANG_LIMIT_S):
        while not re.search(pattern, line := await stderr.readline()):
            assert line, "the service ended"


async def test_a_replacement_is_started_until_the_store_is_available(tmp_path: Path) -> None:
    """A worker is killed while the store is stopped: the service stays, and recovers with the store."""
    with EmbeddedServer(tmp_path) as store:
        process = await asyncio.create_subprocess_exec(
            *SERVE,
            f"--store-url={store.url}",
            "--workers=2",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            url = await ready(process)
            background = await wait_for_background_process(process.pid)
            before = await changed(process.pid, set(), 3)
            killed = min(before - {background})
            assert store.pid is not None and process.stderr is not None
            os.kill(store.pid, signal.SIGSTOP)
            os.kill(killed, signal.SIGKILL)
            await logged(process.stderr, rb"worker \d was ended by signal 9 .*; starting another one in ")
            os.kill(store.pid, signal.SIGCONT)
            await logged(
                process.stderr, rb"INFO aggregator.processes: worker \d is ready again after \d+\.\d s"
            )
            await changed(process.pid, {killed}, 3)
            async with aiohttp.ClientSession() as session, session.get(url + "/healthz") as response:
                status = response.status
            others = before - {background, killed}
        finally:
            os.kill(store.pid or 0, signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
            await process.communicate()

    assert status == 200 and len(others) == 1
    assert not any(map(is_alive, before))


async def test_the_reason_of_a_failed_start_is_reported_once(tmp_path: Path) -> None:
    """Each of three workers meets it: a log with one line says what to do."""
    process = await asyncio.create_subprocess_exec(
        *SERVE,
        f"--data-dir={tmp_path}",
        f"--models-dir={tmp_path / 'absent'}",
        "--workers=3",
        stderr=asyncio.subprocess.PIPE,
    )
    _, output = await process.communicate()

    errors = [line for line in output.decode().splitlines() if "ERROR" in line]
    assert process.returncode == 2
    assert len(errors) == 1 and "absent: there is no such directory; set models_dir" in errors[0]
