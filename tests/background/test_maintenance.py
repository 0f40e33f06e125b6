"""One replica does the upkeep, in turns; the others hear of it."""

import logging

import pytest

from aggregator.background.maintenance import LEASE_KEY, Housekeeping
from aggregator.errors import StoreUnavailable
from aggregator.store.memory import MemoryStore
from tests.support.factories import core, edited, story


async def test_a_turn_is_short_and_the_next_one_goes_on() -> None:
    """Half a million keys of a frozen segment are not gone over in one turn of 40 ms; in the end they are."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", story(1))
    await newsroom.post("a", edited(story(1), 2))
    (space,) = newsroom.index.spaces
    await newsroom.index.segments.seal(space, 0, newsroom.clock())
    keeper = Housekeeping(newsroom.index, newsroom.clock, turn_ms=40)  # each reading of the clock is 1 ms

    await keeper.turn()
    assert keeper.upkeep.done.entries_removed == 0
    turns = 1
    while keeper._work is not None:
        await keeper.turn()
        turns += 1

    assert keeper.upkeep.done.entries_removed > 4
    assert turns == keeper.turns > 20


async def test_the_others_learn_what_the_leader_did() -> None:
    """They work not at all, but know the segments and the floor after their turn."""
    store = MemoryStore()
    leader, other = core(store), core(store)
    (space,) = leader.index.spaces
    await other.index.segments.layers(space)
    first, second = Housekeeping(leader.index, leader.clock), Housekeeping(other.index, other.clock)
    await first.turn()
    await leader.index.segments.seal(space, 0, 1)
    await leader.index.segments.change_head(space, floor=77)

    await second.turn()

    assert (second.turns, second.idle) == (0, 1)
    layers = await other.index.segments.layers(space)
    assert (layers.last, layers.floor) == (1, 77)


async def test_a_failing_turn_is_told_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """The store is away for two turns."""

    class Away(MemoryStore):
        gone = True

        async def acquire(self, key: bytes, token: bytes, ttl_ms: int) -> bool:
            assert key == LEASE_KEY
            if self.gone:
                raise StoreUnavailable("The store is away.")
            return await super().acquire(key, token, ttl_ms)

    store = Away()
    newsroom = core(store)
    keeper = Housekeeping(newsroom.index, newsroom.clock)
    with caplog.at_level(logging.WARNING):
        await keeper.turn()
        await keeper.turn()
    store.gone = False
    await keeper.turn()

    assert (keeper.errors, keeper.turns, len(caplog.records)) == (2, 1, 1)
