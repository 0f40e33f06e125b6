"""Child processes: heartbeats, hung children, stopped parents."""

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

TEST_TIMEOUT_S = 60
HEARTBEAT_TIMEOUT_S = 2.0


def child_main(pipe: Connection) -> None:
    """Send 20 heartbeats per second until SIGTERM, or until the parent is gone."""
    child_process.HEARTBEAT_INTERVAL_S = 0.05

    async def until_stopped() -> None:
        stop = asyncio.Event()
        stop_with_parent(pipe, stop)
        report_ready(pipe, "payload")
        await stop.wait()

    asyncio.run(until_stopped())


async def start_child(monkeypatch: pytest.MonkeyPatch) -> ChildProcess:
    """A ready child with a heartbeat timeout of 2 s."""
    monkeypatch.setattr(child_process, "HEARTBEAT_TIMEOUT_S", HEARTBEAT_TIMEOUT_S)
    child = ChildProcess("test-child", child_main)
    async with asyncio.timeout(TEST_TIMEOUT_S):
        await child.ready.wait()
    return child


async def test_a_hung_child_is_detected_and_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM has no effect on a stopped process, so SIGKILL follows; the exit reason names it."""
    child = await start_child(monkeypatch)
    os.kill(child.process.pid or 0, signal.SIGSTOP)
    async with asyncio.timeout(TEST_TIMEOUT_S):
        await child.hung.wait()
    await child.stop(0.1)

    assert child.ready_payload == "payload" and child.process.exitcode == -signal.SIGKILL
    assert child.exit_reason() == "sent no heartbeat and was killed (code -9)"


async def test_a_child_with_heartbeats_keeps_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats do not replace the ready payload."""
    child = await start_child(monkeypatch)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5 * HEARTBEAT_TIMEOUT_S):
            await child.hung.wait()
    alive = child.process.is_alive()
    await child.stop(TEST_TIMEOUT_S)

    assert alive and child.ready_payload == "payload" and not child.hung.is_set()
    assert child.exit_reason() == f"ended with code {-signal.SIGTERM}"


async def test_a_stopped_parent_does_not_block_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """When unread heartbeats fill the pipe, further ones are dropped."""
    monkeypatch.setattr(child_process, "HEARTBEAT_INTERVAL_S", 0.0)
    parent_end, child_end = multiprocessing.Pipe()
    with parent_end, child_end:
        report_ready(child_end, "payload")
        async with asyncio.timeout(TEST_TIMEOUT_S):
            while select.select([], [child_end], [], 0)[1]:  # noqa: ASYNC110  the pipe reports nothing when it is full
                await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)

        assert parent_end.recv() == "payload"
