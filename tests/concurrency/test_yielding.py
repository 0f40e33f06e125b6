"""Yielding to the event loop, and tasks in parallel with their caller."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from aggregator.concurrency.yielding import spawn_task, yield_control
from tests.support.hang_limit import HANG_LIMIT_S


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
