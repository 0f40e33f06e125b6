"""Interactive tasks first, bulk tasks in between; fair slots; bounded prefetching."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from aggregator.concurrency import (
    MAX_PREFETCHED_CHUNKS,
    SLICE_S,
    FairSemaphore,
    Prefetcher,
    TimeSlicer,
    current_caller,
    spawn_task,
    yield_control,
)
from tests.support.hang_limit import HANG_LIMIT_S

LOWER_PRIORITY = "from aggregator.concurrency import lower_priority; lower_priority(3)"


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


@pytest.mark.integration
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


@pytest.mark.integration
def test_the_priority_is_lowered_for_children_too() -> None:
    """The nice value increases by the given amount, up to 19."""
    child = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"
    start_child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    niceness = subprocess.check_output([sys.executable, "-c", f"{LOWER_PRIORITY}; {start_child}"])

    assert int(niceness) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)


async def hold_slot(
    semaphore: FairSemaphore, order: list[str], caller: str, name: str, done: asyncio.Event
) -> None:
    """Append ``name`` to ``order`` when it gets a slot; hold the slot until ``done``."""
    current_caller.set(caller)
    async with semaphore.slot():
        order.append(name)
        await done.wait()


async def run_ready_tasks() -> None:
    """Let all tasks that are ready run."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_slots_go_round_robin_to_callers() -> None:
    """Three tasks of one caller came first; other callers do not wait for all of them."""
    semaphore, order, done = FairSemaphore(1), list[str](), asyncio.Event()
    arrivals = [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1"), ("b", "b2")]
    tasks = [asyncio.create_task(hold_slot(semaphore, order, *arrival, done)) for arrival in arrivals]
    await run_ready_tasks()
    assert order == ["a1"]
    assert {caller: len(waiting) for caller, waiting in semaphore._queues.items()} == {"a": 2, "b": 2, "c": 1}
    done.set()
    await asyncio.gather(*tasks)

    assert order == ["a1", "b1", "c1", "a2", "b2", "a3"]


async def test_a_cancelled_task_leaves_no_slot_occupied() -> None:
    """Cancelled while waiting, when it gets the slot, and while it holds it, in any order."""
    names = ("a", "b", "c", "d")
    for cancelled in itertools.permutations(range(3)):
        semaphore, order, done = FairSemaphore(1), list[str](), asyncio.Event()
        tasks = [asyncio.create_task(hold_slot(semaphore, order, name, name, done)) for name in names]
        await run_ready_tasks()
        for i in cancelled:
            tasks[i].cancel()
            if i == 0:
                await asyncio.sleep(0)  # it has released the slot, and the next task has not run yet
        done.set()
        await asyncio.gather(*tasks, return_exceptions=True)

        assert order[0] == "a" and order[-1] == "d"
        assert all(waiter.cancelled() for waiting in semaphore._queues.values() for waiter in waiting)
        async with asyncio.timeout(HANG_LIMIT_S), semaphore.slot():
            pass


async def test_no_more_tasks_run_than_there_are_slots() -> None:
    """Two at a time, and all of them in the end."""
    semaphore, order, done = FairSemaphore(2), list[str](), asyncio.Event()
    tasks = [asyncio.create_task(hold_slot(semaphore, order, "a", str(i), done)) for i in range(5)]
    await run_ready_tasks()
    assert order == ["0", "1"]
    done.set()
    await asyncio.gather(*tasks)
    assert order == ["0", "1", "2", "3", "4"]


async def _parts(*parts: Sequence[int]) -> AsyncIterator[Sequence[int]]:
    for part in parts:
        yield part


async def _total(chunk: Sequence[int]) -> list[int]:
    await asyncio.sleep(0)
    return list(chunk)


async def test_results_keep_the_order_of_the_chunks() -> None:
    """Chunks have the chunk size, the last one of a part may be smaller; preparation times do not matter."""
    yields_by_first_item = {1: 5, 3: 1, 5: 3, 6: 0}

    async def prepare(chunk: Sequence[int]) -> list[int]:
        for _ in range(yields_by_first_item[chunk[0]]):
            await asyncio.sleep(0)
        return list(chunk)

    prefetcher = Prefetcher(_parts([1, 2, 3, 4, 5], [6]), 2, prepare)

    assert [chunk async for chunk in prefetcher] == [[1, 2], [3, 4], [5], [6]]


async def test_reading_stops_when_the_prefetch_limit_is_reached() -> None:
    """A consumer that takes nothing stops the reading."""
    begun: list[int] = []

    async def prepare(chunk: Sequence[int]) -> list[int]:
        begun.extend(chunk)
        return list(chunk)

    prefetcher = Prefetcher(_parts(*([i] for i in range(20))), 1, prepare)
    for _ in range(100):
        await asyncio.sleep(0)
    begun_before_take = len(begun)
    first = await anext(prefetcher)
    await prefetcher.close()

    assert (begun_before_take, first) == (MAX_PREFETCHED_CHUNKS + 1, [0])


async def test_take_ready_returns_only_finished_results() -> None:
    """In order, up to the first unfinished one; that one and the end follow when they are ready."""
    slow = asyncio.Event()

    async def prepare(chunk: Sequence[int]) -> list[int]:
        if chunk[0] == 3:
            await slow.wait()
        return list(chunk)

    prefetcher = Prefetcher(_parts([0, 1, 2, 3, 4]), 1, prepare)
    first = await anext(prefetcher)
    for _ in range(20):
        await asyncio.sleep(0)

    assert first == [0] and prefetcher.take_ready() == [[1], [2]] and prefetcher.take_ready() == []
    slow.set()
    assert [await anext(prefetcher), *prefetcher.take_ready()] == [[3], [4]]
    assert prefetcher.take_ready() == [] and [chunk async for chunk in prefetcher] == []


async def test_a_source_error_is_raised_after_earlier_results() -> None:
    """No item that was read is lost."""

    async def failing() -> AsyncIterator[Sequence[int]]:
        yield [1]
        raise ConnectionResetError("connection lost")

    prefetcher = Prefetcher(failing(), 2, _total)

    assert await anext(prefetcher) == [1]
    with pytest.raises(ConnectionResetError):
        await anext(prefetcher)
    await prefetcher.close()


async def test_close_cancels_source_and_preparations() -> None:
    """An endless source and endless preparations; closing twice is harmless."""
    ended: list[str] = []

    async def endless() -> AsyncIterator[Sequence[int]]:
        try:
            yield [1]
            await asyncio.Event().wait()
        finally:
            ended.append("source")

    async def prepare(chunk: Sequence[int]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("preparation")

    prefetcher = Prefetcher(endless(), 1, prepare)
    for _ in range(10):
        await asyncio.sleep(0)
    await prefetcher.close()
    await prefetcher.close()

    assert sorted(ended) == ["preparation", "source"]
