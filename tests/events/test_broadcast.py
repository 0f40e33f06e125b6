"""Changed events for many listeners: resumed where they were, none lost, none twice, nobody held up."""

import asyncio
from dataclasses import replace

import pytest

from aggregator.events import broadcast
from aggregator.events.broadcast import ChangeBroadcaster, parse_position
from aggregator.events.repository import EventRepository
from tests.support.factories import event, tell

SOON_S = 5.0


async def happen(log: EventRepository, *sizes: int) -> None:
    """One event changes to these sizes, one commit each."""
    for size in sizes:
        await tell(log, "updated", replace(event("e1", "Bridge closed"), size=size), size)


@pytest.fixture
def log(store):
    """The event log of a fresh store."""
    return EventRepository(store)


@pytest.fixture
def stream(log):
    """A stream that reads every 10 ms."""
    return ChangeBroadcaster(log, poll_interval_s=0.01)


async def heard(listener, count: int) -> list[int]:
    """Times of the next changes."""
    return [(await listener.get(SOON_S)).change.at_ms for _ in range(count)]


async def test_everybody_hears_what_happens_from_now_on(log, stream):
    """Two listeners get the same changes in order; what was before, neither."""
    await happen(log, 1)
    async with stream.subscribe() as one, stream.subscribe() as two:
        await happen(log, 2, 3)

        assert await heard(one, 2) == await heard(two, 2) == [2, 3]
        assert stream.subscriber_count == 2
    assert stream.subscriber_count == 0


async def test_it_resumes_behind_a_position(log, stream):
    """Whoever comes back gets what it missed, then what happens, beside a listener that never left."""
    async with stream.subscribe() as faithful:
        async with stream.subscribe() as first:
            await happen(log, 1, 2)
            assert await heard(first, 1) == [1]
            position = first.position
        await happen(log, 3)
        async with stream.subscribe(position) as again:
            await happen(log, 4)

            assert await heard(again, 3) == [2, 3, 4]
            assert not again.has_gap
        assert await heard(faithful, 4) == [1, 2, 3, 4]


async def test_another_process_resumes_the_same_positions(log, stream):
    """Positions are the store's, not the process's: after a restart nothing is lost."""
    async with stream.subscribe() as before:
        await happen(log, 1, 2, 3)
        assert await heard(before, 1) == [1]
        position = before.position

    async with ChangeBroadcaster(log, poll_interval_s=0.01).subscribe(position) as after:
        assert await heard(after, 2) == [2, 3]


@pytest.mark.parametrize("position", [b"99999999999999-0", b"nonsense", b"5", b"5-0"])
async def test_a_position_of_another_store_or_of_long_ago_starts_over(log, stream, position):
    """It says that changes were missed, and goes on from now."""
    await happen(log, 1)
    async with stream.subscribe(position) as listener:
        await happen(log, 2)

        assert listener.has_gap
        assert await heard(listener, 1) == [2]


async def test_who_missed_too_much_starts_over(log, stream, monkeypatch):
    """A reader of last month's position loads the list again in place of a thousand changes."""
    monkeypatch.setattr(broadcast, "QUEUE_LIMIT", 2)
    await happen(log, 1)
    position = await stream.latest_position()
    await happen(log, 2, 3, 4, 5)
    async with stream.subscribe(position) as listener:
        await happen(log, 6)

        assert listener.has_gap
        assert await heard(listener, 1) == [6]


async def test_who_is_too_slow_is_let_go_and_resumes(log, stream, monkeypatch):
    """What waits for it is still handed over, then it ends; others are not held up."""
    monkeypatch.setattr(broadcast, "QUEUE_LIMIT", 2)
    async with stream.subscribe() as slow, stream.subscribe() as quick:
        for size in (1, 2, 3):
            await happen(log, size)
            assert await heard(quick, 1) == [size]

        assert await heard(slow, 2) == [1, 2]
        assert await slow.get(SOON_S) is None
        position = slow.position
    async with stream.subscribe(position) as again:
        assert await heard(again, 1) == [3]


async def test_closing_ends_all(stream):
    """A shutdown waits for nobody, and takes no more listeners."""
    async with stream.subscribe() as listener:
        waiting = asyncio.create_task(listener.get(SOON_S))
        await asyncio.sleep(0)
        stream.close()

        assert await waiting is None
    assert stream.is_full


async def test_silence_is_a_timeout(stream):
    """So that the edge can send its heartbeat."""
    async with stream.subscribe() as listener:
        with pytest.raises(TimeoutError):
            await listener.get(0.01)


def test_positions_compare_as_numbers():
    """Not as texts: 9 comes before 10."""
    assert (
        parse_position(b"9-0") < parse_position(b"10-0") < parse_position(b"10-2") < parse_position(b"10-10")
    )
    assert parse_position(b"") == (0, 0)
