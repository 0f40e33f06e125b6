"""Scheduling: interactive tasks first, bulk tasks in between, tasks in parallel, process priority."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from typing import Any

import pytest

from aggregator.concurrency.scheduling import SLICE_S, PriorityGate, TimeSlicer, spawn_task, yield_control
from tests.support.hang_limit import HANG_LIMIT_S

LOWER_PRIORITY = "from aggregator.concurrency.scheduling import lower_priority; lower_priority(3)"


async def test_yielding_lets_every_ready_task_run_once() -> None:
    """Two tasks that yield after each step advance in turn."""
    steps: list[str] = []

    async def work(name: str) -> None:
        for _ in range(3):
            steps.append(name)
            await yield_control()

    await asyncio.gather(work("a"), work("b"))

    assert steps == ["a", "b", "a", "b", "a", "b"]


async def test_a_spawned_task_runs_without_being_awaited() -> None:
    """Its result or its error is returned to a caller that awaits it later."""
    started = asyncio.Event()

    async def work(fails: bool) -> int:
        started.set()
        if fails:
            raise ValueError("No ferry today.")
        return 7

    task = spawn_task(work(False))
    await asyncio.wait_for(started.wait(), HANG_LIMIT_S)

    assert await task == 7
    with pytest.raises(ValueError, match="No ferry today"):
        await spawn_task(work(True))


async def test_the_error_of_an_ignored_task_is_not_reported() -> None:
    """Its caller was cancelled; asyncio would report an exception that nobody has retrieved."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def work() -> None:
        raise ValueError("No ferry today.")

    spawn_task(work())
    for _ in range(3):
        await yield_control()
    gc.collect()

    assert reported == []


async def test_a_cancelled_task_ends_without_a_report() -> None:
    """The callback that retrieves the exception accepts a task that has none."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = spawn_task(work())
    await yield_control()
    task.cancel()
    await asyncio.wait_for(ended.wait(), HANG_LIMIT_S)

    with pytest.raises(asyncio.CancelledError):
        await task
    assert reported == []


async def test_bulk_tasks_pause_while_an_interactive_task_is_active() -> None:
    """For all steps of the interactive task; the bulk tasks resume as soon as it ends."""
    gate, seen = PriorityGate(), list[str]()

    async def batch() -> None:
        for _ in range(3):
            await gate.yield_control()
            seen.append("batch")

    async def interactive() -> None:
        with gate.high_priority():
            for _ in range(5):
                await asyncio.sleep(0)
                seen.append("interactive")

    await asyncio.gather(interactive(), batch(), batch())

    assert seen == ["interactive"] * 5 + ["batch"] * 6


async def test_the_pause_of_a_bulk_task_is_limited() -> None:
    """Under a constant interactive load bulk tasks still make progress, and no waiter leaks."""
    gate = PriorityGate()
    with gate.high_priority():
        async with asyncio.timeout(HANG_LIMIT_S):
            for _ in range(3):
                await gate.yield_control()

    assert not gate._waiters
    await gate.yield_control()


async def test_failed_and_cancelled_tasks_block_no_other() -> None:
    """An interactive task that raises, and a bulk task that is cancelled while it waits."""
    gate = PriorityGate()
    try:
        with gate.high_priority():
            waiting = asyncio.create_task(gate.yield_control())
            await asyncio.sleep(0)
            waiting.cancel()
            raise ValueError
    except ValueError:
        pass
    await asyncio.gather(waiting, return_exceptions=True)

    assert waiting.cancelled() and not gate._waiters and not gate._high_priority_count


async def test_a_time_slice_of_steps_yields_once() -> None:
    """Other tasks run at the end of the slice, not after each step."""
    now_s, seen = 100.0, 0
    slicer = TimeSlicer(clock_s=lambda: now_s)

    async def other() -> None:
        nonlocal seen
        while True:
            seen += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for _ in range(50):
        await slicer.yield_control()
    assert seen == 1  # before the first step
    now_s += SLICE_S
    await slicer.yield_control()
    assert seen == 2
    task.cancel()


def test_the_priority_is_lowered_for_children_too() -> None:
    """The nice value increases by the given amount, up to 19."""
    child = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"
    start_child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    niceness = subprocess.check_output([sys.executable, "-c", f"{LOWER_PRIORITY}; {start_child}"])

    assert int(niceness) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)
