"""Index maintenance: short runs of one leader, whose changes the other replicas read."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from aggregator.background.maintenance import MAINTENANCE_LEASE_KEY, IndexMaintenance
from aggregator.errors import StoreUnavailable
from aggregator.store.memory import MemoryStore
from tests.support.factories import core, edited, story


async def test_a_run_is_short_and_the_next_one_resumes() -> None:
    """The 500,000 keys of a sealed segment take more than one run of 40 ms, and all are compacted."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", story(1))
    await newsroom.post("a", edited(story(1), 2))
    (space,) = newsroom.index.spaces
    await newsroom.index.segments.seal(space, 0, newsroom.clock())
    # Each reading of the clock advances it by 1 ms.
    maintenance = IndexMaintenance(newsroom.index, newsroom.clock, time_budget_ms=40)

    await maintenance.run_once()
    assert maintenance.jobs.compactor.counters.entries_removed == 0
    runs = 1
    while maintenance._pending_steps is not None:
        await maintenance.run_once()
        runs += 1

    assert maintenance.jobs.compactor.counters.entries_removed > 4
    assert runs == maintenance.runs > 20


async def test_followers_read_the_changes_of_the_leader() -> None:
    """They do no work, but know the segments and the floor after their run."""
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


async def test_a_failing_run_is_logged_once_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    """The store is unavailable for two runs."""

    class FailingStore(MemoryStore):
        fails = True

        async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
            if self.fails and MAINTENANCE_LEASE_KEY in keys:
                raise StoreUnavailable("The store is unavailable.")
            return await super().read(keys)

    store = FailingStore()
    newsroom = core(store)
    maintenance = IndexMaintenance(newsroom.index, newsroom.clock)
    with caplog.at_level(logging.WARNING):
        await maintenance.run_once()
        await maintenance.run_once()
    store.fails = False
    await maintenance.run_once()

    assert (maintenance.errors, maintenance.runs, len(caplog.records)) == (2, 1, 1)
