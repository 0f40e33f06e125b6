"""Single articles first, the rest in between."""

from __future__ import annotations

import asyncio

from aggregator.concurrency.priority_gate import SLICE_S, PriorityGate, TimeSlicer


async def test_who_gives_way_stands_still_while_somebody_goes_first() -> None:
    """However many steps the one has, and the other goes on as soon as it is done."""
    turns, seen = PriorityGate(), list[str]()

    async def batch() -> None:
        for _ in range(3):
            await turns.yield_control()
            seen.append("batch")

    async def single() -> None:
        with turns.high_priority():
            for _ in range(5):
                await asyncio.sleep(0)
                seen.append("single")

    await asyncio.gather(single(), batch(), batch())

    assert seen == ["single"] * 5 + ["batch"] * 6


async def test_patience_has_an_end() -> None:
    """Where somebody always goes first, the rest goes on all the same, and nothing is left behind."""
    turns = PriorityGate()
    with turns.high_priority():
        async with asyncio.timeout(5):
            for _ in range(3):
                await turns.yield_control()

    assert not turns._waiters
    await turns.yield_control()


async def test_whoever_fails_lets_the_others_go_on() -> None:
    """An article that raises, and a batch that is cancelled while it waits, hold up nobody."""
    turns = PriorityGate()
    try:
        with turns.high_priority():
            waiting = asyncio.create_task(turns.yield_control())
            await asyncio.sleep(0)
            waiting.cancel()
            raise ValueError
    except ValueError:
        pass
    await asyncio.gather(waiting, return_exceptions=True)

    assert waiting.cancelled() and not turns._waiters and not turns._high_priority_count


async def test_a_spell_of_steps_takes_one_turn() -> None:
    """Others have theirs when it is over, and not after each step."""
    now_s, seen = 100.0, 0
    spells = TimeSlicer(clock_s=lambda: now_s)

    async def other() -> None:
        nonlocal seen
        while True:
            seen += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for _ in range(50):
        await spells.yield_control()
    assert seen == 1  # before the first step
    now_s += SLICE_S
    await spells.yield_control()
    assert seen == 2
    task.cancel()
