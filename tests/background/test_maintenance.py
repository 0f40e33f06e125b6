"""One replica does the upkeep, in turns; the others hear of it."""

import logging

import pytest

from aggregator.background.maintenance import MAINTENANCE_LEASE_KEY, IndexMaintenance
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
    keeper = IndexMaintenance(
        newsroom.index, newsroom.clock, time_budget_ms=40
    )  # each reading of the clock is 1 ms

    await keeper.run_once()
    assert keeper.compactor.counters.entries_removed == 0
    turns = 1
    while keeper._pending_chunks is not None:
        await keeper.run_once()
        turns += 1

    assert keeper.compactor.counters.entries_removed > 4
    assert turns == keeper.runs > 20


async def test_the_others_learn_what_the_leader_did() -> None:
    """They work not at all, but know the segments and the floor after their turn."""
    store = MemoryStore()
    leader, other = core(store), core(store)
    (space,) = leader.index.spaces
    await other.index.segments.stack(space)
    first, second = IndexMaintenance(leader.index, leader.clock), IndexMaintenance(other.index, other.clock)
    await first.run_once()
    await leader.index.segments.seal(space, 0, 1)
    await leader.index.segments.advance_head(space, floor=77)

    await second.run_once()

    assert (second.runs, second.skipped) == (0, 1)
    layers = await other.index.segments.stack(space)
    assert (layers.last, layers.floor) == (1, 77)


async def test_a_failing_turn_is_told_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """The store is away for two turns."""

    class Away(MemoryStore):
        gone = True

        async def acquire(self, key: bytes, token: bytes, ttl_ms: int) -> bool:
            assert key == MAINTENANCE_LEASE_KEY
            if self.gone:
                raise StoreUnavailable("The store is away.")
            return await super().acquire(key, token, ttl_ms)

    store = Away()
    newsroom = core(store)
    keeper = IndexMaintenance(newsroom.index, newsroom.clock)
    with caplog.at_level(logging.WARNING):
        await keeper.run_once()
        await keeper.run_once()
    store.gone = False
    await keeper.run_once()

    assert (keeper.errors, keeper.runs, len(caplog.records)) == (2, 1, 1)
