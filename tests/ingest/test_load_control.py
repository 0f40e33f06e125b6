"""Load control: the three mechanisms of a process act on each other, and on those of other processes."""

from __future__ import annotations

import asyncio

import pytest

from aggregator.ingest.load_control import LoadControl
from aggregator.ingest.throttle import SLICE_ARTICLES
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore


async def slice_size(control: LoadControl) -> int:
    """Articles of the next slice of a large bulk request."""
    async with control.throttle.slice(1000) as articles:
        return articles


async def test_bulk_work_is_not_sliced_while_nobody_posts_single_articles(store: Store) -> None:
    """All articles are one slice."""
    assert await slice_size(LoadControl.create(store)) == 1000


async def test_an_interactive_article_of_this_process_slices_bulk_work(store: Store) -> None:
    """From its arrival on, without a round trip in between."""
    control = LoadControl.create(store)
    control.activity.record_arrival()

    assert await slice_size(control) == SLICE_ARTICLES
    await control.activity.close()


async def test_an_interactive_article_of_another_process_slices_bulk_work(store: Store) -> None:
    """The beacon of both is in the store."""
    first, second = LoadControl.create(store), LoadControl.create(store)
    first.activity.record_arrival()
    assert first.activity._publish_task is not None
    await first.activity._publish_task

    assert await slice_size(second) == SLICE_ARTICLES


async def test_a_slice_begins_after_the_interactive_article_in_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The throttle waits at the gate of the same process."""
    monkeypatch.setattr("aggregator.concurrency.scheduling.MAX_WAIT_S", 60.0)
    control = LoadControl.create(MemoryStore())
    control.activity.record_arrival()
    with control.gate.high_priority():
        slicing = asyncio.create_task(slice_size(control))
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(control.gate._waiters) == 1
        assert not slicing.done()

    assert await slicing == SLICE_ARTICLES
    await control.activity.close()
