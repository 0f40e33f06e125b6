"""Child processes: heartbeats, hung children, stopped parents, pauses between restarts."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import select
import signal
import threading
import time
from itertools import pairwise
from multiprocessing.connection import Connection

import pytest

from aggregator.errors import EXIT_UNAVAILABLE
from aggregator.runtime import processes
from aggregator.runtime.processes import (
    FIRST_PAUSE_S,
    MAX_PAUSE_S,
    MAX_STORE_PAUSE_S,
    ChildProcess,
    follow_parent,
    next_pause_s,
    send_to_parent,
)
from tests.support.hang_limit import HANG_LIMIT_S

HEARTBEAT_TIMEOUT_S = 2.0


def child_main(pipe: Connection) -> None:
    """Send 20 heartbeats per second until SIGTERM, or until the parent is gone."""
    processes.HEARTBEAT_INTERVAL_S = 0.05

    async def until_stopped() -> None:
        stop = asyncio.Event()
        follow_parent(pipe, stop, HANG_LIMIT_S)
        send_to_parent(pipe, "payload")
        await stop.wait()

    asyncio.run(until_stopped())


async def start_child(monkeypatch: pytest.MonkeyPatch) -> ChildProcess:
    """A ready child with a heartbeat timeout of 2 s."""
    monkeypatch.setattr(processes, "HEARTBEAT_TIMEOUT_S", HEARTBEAT_TIMEOUT_S)
    child = ChildProcess("test-child", child_main)
    async with asyncio.timeout(HANG_LIMIT_S):
        await child.ready.wait()
    return child


@pytest.mark.integration
async def test_a_hung_child_is_detected_and_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM has no effect on a stopped process, so SIGKILL follows; the exit reason names it."""
    child = await start_child(monkeypatch)
    os.kill(child.process.pid or 0, signal.SIGSTOP)
    async with asyncio.timeout(HANG_LIMIT_S):
        await child.hung.wait()
    await child.stop(0.1)

    assert child.ready_payload == "payload" and child.process.exitcode == -signal.SIGKILL
    assert child.exit_reason() == "sent no heartbeat and was killed (code -9)"


@pytest.mark.integration
async def test_a_child_with_heartbeats_keeps_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats do not replace the ready payload."""
    child = await start_child(monkeypatch)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5 * HEARTBEAT_TIMEOUT_S):
            await child.hung.wait()
    alive = child.process.is_alive()
    await child.stop(HANG_LIMIT_S)

    assert alive and child.ready_payload == "payload" and not child.hung.is_set()
    assert child.exit_reason() == "was ended by signal 15 (Terminated)"


async def test_a_stopped_parent_does_not_block_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """When unread heartbeats fill the pipe, further ones are dropped."""
    monkeypatch.setattr(processes, "HEARTBEAT_INTERVAL_S", 0.0)
    parent_end, child_end = multiprocessing.Pipe()
    with parent_end, child_end:
        send_to_parent(child_end, "payload")
        follow_parent(child_end, asyncio.Event(), HANG_LIMIT_S)
        async with asyncio.timeout(HANG_LIMIT_S):
            while select.select([], [child_end], [], 0)[1]:  # noqa: ASYNC110  the pipe reports nothing when it is full
                await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)

        assert parent_end.recv() == "payload"


def silent_child_main(pipe: Connection) -> None:
    """Never become ready."""
    signal.pause()


@pytest.mark.integration
async def test_a_child_that_hangs_during_its_start_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its event loop never runs, so it sends nothing."""
    monkeypatch.setattr(processes, "START_TIMEOUT_S", 2.0)
    monkeypatch.setattr(processes, "HEARTBEAT_TIMEOUT_S", HEARTBEAT_TIMEOUT_S)
    child = ChildProcess("test-child", silent_child_main)
    async with asyncio.timeout(HANG_LIMIT_S):
        await child.hung.wait()
    await child.stop(HANG_LIMIT_S)

    assert not child.ready.is_set()


@pytest.mark.integration
async def test_a_suspended_machine_does_not_make_a_child_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parent and child were stopped for longer than the timeout: the child has time to send a heartbeat."""
    child = await start_child(monkeypatch)
    os.kill(child.process.pid or 0, signal.SIGSTOP)
    time.sleep(1.5 * HEARTBEAT_TIMEOUT_S)  # noqa: ASYNC251  this process is stopped, too
    os.kill(child.process.pid or 0, signal.SIGCONT)
    heartbeats_s = 1.5 * HEARTBEAT_TIMEOUT_S
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(heartbeats_s):
            await child.hung.wait()
    await child.stop(HANG_LIMIT_S)

    assert not child.hung.is_set()


def blocked_child_main(pipe: Connection) -> None:
    """Block when the parent is gone, instead of draining."""

    async def until_orphaned() -> None:
        stop = asyncio.Event()
        follow_parent(pipe, stop, 1.0)
        send_to_parent(pipe, "payload")
        await stop.wait()
        threading.Event().wait()

    asyncio.run(until_orphaned())


@pytest.mark.integration
def test_a_child_that_is_blocked_ends_without_its_parent() -> None:
    """Nobody else would end it."""
    context = multiprocessing.get_context("spawn")
    parent_end, child_end = context.Pipe()
    child = context.Process(target=blocked_child_main, args=(child_end,))
    with parent_end:
        with child_end:
            child.start()
        assert parent_end.recv() == "payload"
    child.join(HANG_LIMIT_S)
    code = child.exitcode
    child.kill()
    child.join()

    assert code == -signal.SIGALRM


def test_failed_starts_pause_twice_as_long_up_to_the_limit() -> None:
    """A replacement that is killed again and again does not use all of the processor."""
    pauses = [0.0]
    for _ in range(12):
        pauses.append(next_pause_s(pauses[-1], 1, is_stable=False))

    assert pauses[1] == FIRST_PAUSE_S and pauses[-1] == MAX_PAUSE_S
    assert all(later == min(2 * earlier, MAX_PAUSE_S) for earlier, later in pairwise(pauses[1:]))
    assert next_pause_s(MAX_PAUSE_S, 1, is_stable=True) == 0.0
    assert next_pause_s(MAX_PAUSE_S, EXIT_UNAVAILABLE, is_stable=False) == MAX_STORE_PAUSE_S
