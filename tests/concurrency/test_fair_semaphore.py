"""Fair semaphore: free slots go round-robin to the callers that wait."""

from __future__ import annotations

import asyncio
import itertools

from aggregator.concurrency.fair_semaphore import FairSemaphore, current_caller
from tests.support.hang_limit import HANG_LIMIT_S


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
    assert [semaphore.queued(caller) for caller in ("a", "b", "z")] == [2, 2, 0]
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
        assert not any(semaphore.queued(name) for name in names)
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
