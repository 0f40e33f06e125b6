"""Single articles first, the rest in between."""

from __future__ import annotations

import asyncio

from aggregator.concurrency.priority_gate import SPELL_S, Spells, Turns


async def test_who_gives_way_stands_still_while_somebody_goes_first() -> None:
    """However many steps the one has, and the other goes on as soon as it is done."""
    turns, seen = Turns(), list[str]()

    async def batch() -> None:
        for _ in range(3):
            await turns.give_way()
            seen.append("batch")

    async def single() -> None:
        with turns.first():
            for _ in range(5):
                await asyncio.sleep(0)
                seen.append("single")

    await asyncio.gather(single(), batch(), batch())

    assert seen == ["single"] * 5 + ["batch"] * 6


async def test_patience_has_an_end() -> None:
    """Where somebody always goes first, the rest goes on all the same, and nothing is left behind."""
    turns = Turns()
    with turns.first():
        async with asyncio.timeout(5):
            for _ in range(3):
                await turns.give_way()

    assert not turns._waiting
    await turns.give_way()


async def test_whoever_fails_lets_the_others_go_on() -> None:
    """An article that raises, and a batch that is cancelled while it waits, hold up nobody."""
    turns = Turns()
    try:
        with turns.first():
            waiting = asyncio.create_task(turns.give_way())
            await asyncio.sleep(0)
            waiting.cancel()
            raise ValueError
    except ValueError:
        pass
    await asyncio.gather(waiting, return_exceptions=True)

    assert waiting.cancelled() and not turns._waiting and not turns._first


async def test_a_spell_of_steps_takes_one_turn() -> None:
    """Others have theirs when it is over, and not after each step."""
    now_s, seen = 100.0, 0
    spells = Spells(clock_s=lambda: now_s)

    async def other() -> None:
        nonlocal seen
        while True:
            seen += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for _ in range(50):
        await spells.give_way()
    assert seen == 1  # before the first step
    now_s += SPELL_S
    await spells.give_way()
    assert seen == 2
    task.cancel()
