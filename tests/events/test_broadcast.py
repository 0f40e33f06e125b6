"""Broadcast of event changes: subscribers resume at their position, lose nothing, get nothing twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from aggregator.events import broadcast
from aggregator.events.broadcast import ChangeBroadcaster, Subscriber
from aggregator.events.repository import EventRepository
from aggregator.store.base import Store
from tests.support.factories import commit_event, event

TIMEOUT_S = 5.0


async def change_event(repository: EventRepository, *sizes: int) -> None:
    """Change one event to these sizes, one commit each; the time of a change is the size in ms."""
    for size in sizes:
        await commit_event(repository, "updated", replace(event("e1", "Bridge closed"), size=size), size)


@pytest.fixture
def repository(store: Store) -> EventRepository:
    """The event repository of a fresh store."""
    return EventRepository(store)


@pytest.fixture
def broadcaster(repository: EventRepository) -> ChangeBroadcaster:
    """A broadcaster that reads every 10 ms."""
    return ChangeBroadcaster(repository, poll_interval_s=0.01)


async def received(subscriber: Subscriber, count: int) -> list[int]:
    """Times of the next changes."""
    notifications = [await subscriber.get(TIMEOUT_S) for _ in range(count)]
    return [n.change.at_ms for n in notifications if n is not None]


async def test_all_subscribers_receive_changes_from_now_on(
    repository: EventRepository, broadcaster: ChangeBroadcaster
) -> None:
    """Two subscribers get the same changes in order, and none from before."""
    await change_event(repository, 1)
    async with broadcaster.subscribe() as first, broadcaster.subscribe() as second:
        await change_event(repository, 2, 3)

        assert await received(first, 2) == await received(second, 2) == [2, 3]
        assert len(broadcaster._subscribers) == 2
    assert not broadcaster._subscribers


async def test_a_subscriber_resumes_after_its_position(
    repository: EventRepository, broadcaster: ChangeBroadcaster
) -> None:
    """A returning client gets what it missed, then new changes; a permanent subscriber is not disturbed."""
    async with broadcaster.subscribe() as permanent:
        async with broadcaster.subscribe() as first:
            await change_event(repository, 1, 2)
            assert await received(first, 1) == [1]
            position = first.position
        await change_event(repository, 3)
        async with broadcaster.subscribe(position) as resumed:
            await change_event(repository, 4)

            assert await received(resumed, 3) == [2, 3, 4]
            assert not resumed.has_gap
        assert await received(permanent, 4) == [1, 2, 3, 4]


async def test_another_process_resumes_the_same_positions(
    repository: EventRepository, broadcaster: ChangeBroadcaster
) -> None:
    """Positions belong to the store, not to the process: after a restart nothing is lost."""
    async with broadcaster.subscribe() as before:
        await change_event(repository, 1, 2, 3)
        assert await received(before, 1) == [1]
        position = before.position

    async with ChangeBroadcaster(repository, poll_interval_s=0.01).subscribe(position) as after:
        assert await received(after, 2) == [2, 3]


@pytest.mark.parametrize("position", [b"99999999999999-0", b"nonsense", b"5", b"5-0"])
async def test_an_unknown_or_expired_position_starts_over(
    repository: EventRepository, broadcaster: ChangeBroadcaster, position: bytes
) -> None:
    """The subscription reports a gap and continues from now."""
    await change_event(repository, 1)
    async with broadcaster.subscribe(position) as subscriber:
        await change_event(repository, 2)

        assert subscriber.has_gap
        assert await received(subscriber, 1) == [2]


async def test_a_subscriber_that_missed_too_much_starts_over(
    repository: EventRepository, broadcaster: ChangeBroadcaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client reloads the list instead of receiving a thousand changes."""
    monkeypatch.setattr(broadcast, "QUEUE_LIMIT", 2)
    await change_event(repository, 1)
    position = await broadcaster.latest_position()
    await change_event(repository, 2, 3, 4, 5)
    async with broadcaster.subscribe(position) as subscriber:
        await change_event(repository, 6)

        assert subscriber.has_gap
        assert await received(subscriber, 1) == [6]


async def test_a_slow_subscriber_is_disconnected_and_resumes(
    repository: EventRepository, broadcaster: ChangeBroadcaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It still gets what is queued, then the end; other subscribers are not delayed."""
    monkeypatch.setattr(broadcast, "QUEUE_LIMIT", 2)
    async with broadcaster.subscribe() as slow, broadcaster.subscribe() as fast:
        for size in (1, 2, 3):
            await change_event(repository, size)
            assert await received(fast, 1) == [size]

        assert await received(slow, 2) == [1, 2]
        assert await slow.get(TIMEOUT_S) is None
        position = slow.position
    async with broadcaster.subscribe(position) as resumed:
        assert await received(resumed, 1) == [3]


async def test_closing_ends_all_subscriptions(broadcaster: ChangeBroadcaster) -> None:
    """A shutdown waits for no client, and no further one is accepted."""
    async with broadcaster.subscribe() as subscriber:
        waiting = asyncio.create_task(subscriber.get(TIMEOUT_S))
        await asyncio.sleep(0)
        broadcaster.close()

        assert await waiting is None
    assert broadcaster.is_full


async def test_silence_is_a_timeout(broadcaster: ChangeBroadcaster) -> None:
    """The HTTP handler then sends its heartbeat."""
    async with broadcaster.subscribe() as subscriber:
        with pytest.raises(TimeoutError):
            await subscriber.get(0.01)
