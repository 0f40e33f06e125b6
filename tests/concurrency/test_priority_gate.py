"""Priority gate and time slicer: interactive tasks first, bulk tasks in between."""

from __future__ import annotations

import asyncio

from aggregator.concurrency.priority_gate import SLICE_S, PriorityGate, TimeSlicer
from tests.support.hang_limit import HANG_LIMIT_S


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
