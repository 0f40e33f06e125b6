"""Counts of articles per minute of the last hour."""

from __future__ import annotations

import pytest

from aggregator.index import arrival_counts
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS, MINUTE_MS
from tests.support.factories import START_MS, Core, core, story
from tests.support.factories import Clock as ServiceClock

NOW_MS = START_MS // HOUR_MS * HOUR_MS + 30 * MINUTE_MS


def core_at(clock: ServiceClock) -> Core:
    """A core whose store has the same clock."""
    return core(MemoryStore(clock), clock=clock)


async def test_every_article_of_the_hour_counts_once() -> None:
    """By minute and verdict, also over several updates; earlier ones and deletions do not."""
    clock = ServiceClock(NOW_MS - 2 * HOUR_MS)
    service = core_at(clock)
    await service.post("old", story(1))
    clock.now_ms = NOW_MS - 30 * MINUTE_MS
    await service.post("a", story(2))
    await service.post("a2", story(2))
    first = await service.index.arrival_counts.update(NOW_MS)
    clock.now_ms = NOW_MS
    await service.post("b", story(3))
    await service.ingest.delete("b")
    second = await service.index.arrival_counts.update(NOW_MS + 1)
    later = await service.index.arrival_counts.update(NOW_MS + 35 * MINUTE_MS)

    assert first.by_minute == ((NOW_MS - 30 * MINUTE_MS, 2),)
    assert second.by_minute == ((NOW_MS - 30 * MINUTE_MS, 2), (NOW_MS, 1))
    assert (second.total, second.verdicts) == (3, {"new": 2, "related": 0, "duplicate": 1})
    assert second.is_complete
    assert later.by_minute == ((NOW_MS, 1),)


async def test_a_busy_hour_is_counted_in_several_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then the counts are marked as incomplete."""
    monkeypatch.setattr(arrival_counts, "ENTRIES_PER_READ", 2)
    monkeypatch.setattr(arrival_counts, "MAX_ENTRIES_PER_UPDATE", 4)
    service = core_at(ServiceClock(NOW_MS))
    for n in range(5):
        await service.post(f"a{n}", story(n))
    updates = [await service.index.arrival_counts.update(NOW_MS + 60) for _ in range(3)]

    assert [(update.total, update.is_complete) for update in updates] == [(4, False), (5, True), (5, True)]
