"""Processes of ours and their parent: one that hangs is found out, one that works is not."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import select
import signal
from multiprocessing.connection import Connection

import pytest

from aggregator.runtime import child_process
from aggregator.runtime.child_process import ChildProcess, report_ready, stop_with_parent

PATIENCE_S = 60
HUNG_S = 2.0


def working(pipe: Connection) -> None:
    """Gives a sign of life twenty times a second until its parent is gone or ends it."""
    child_process.HEARTBEAT_INTERVAL_S = 0.05

    async def until_stopped() -> None:
        stop = asyncio.Event()
        stop_with_parent(pipe, stop)
        report_ready(pipe, "here")
        await stop.wait()

    asyncio.run(until_stopped())


async def ready(monkeypatch: pytest.MonkeyPatch) -> ChildProcess:
    """Such a process, which may be silent for two seconds."""
    monkeypatch.setattr(child_process, "HEARTBEAT_TIMEOUT_S", HUNG_S)
    child = ChildProcess("test-child", working)
    async with asyncio.timeout(PATIENCE_S):
        await child.ready.wait()
    return child


async def test_one_that_stands_still_is_found_out_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM does not reach it, so it is killed; what became of it is told in words."""
    child = await ready(monkeypatch)
    os.kill(child.process.pid or 0, signal.SIGSTOP)
    async with asyncio.timeout(PATIENCE_S):
        await child.hung.wait()
    await child.stop(0.1)

    assert child.ready_payload == "here" and child.process.exitcode == -signal.SIGKILL
    assert child.exit_reason() == "gave no sign of life and was ended (code -9)"


async def test_one_that_works_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its signs of life are no second readiness, and keep it from being taken for one that hangs."""
    child = await ready(monkeypatch)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5 * HUNG_S):
            await child.hung.wait()
    alive = child.process.is_alive()
    await child.stop(PATIENCE_S)

    assert alive and child.ready_payload == "here" and not child.hung.is_set()
    assert child.exit_reason() == f"ended with code {-signal.SIGTERM}"


async def test_a_parent_that_stands_still_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs of life that nobody reads fill the pipe, and whoever gives them goes on."""
    monkeypatch.setattr(child_process, "HEARTBEAT_INTERVAL_S", 0.0)
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs:
        report_ready(theirs, "here")
        async with asyncio.timeout(PATIENCE_S):
            while select.select([], [theirs], [], 0)[1]:  # noqa: ASYNC110
                await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)

        assert ours.recv() == "here"
