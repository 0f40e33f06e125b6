"""Single articles in one process are known to the loads of another one on the same store."""

from __future__ import annotations

import math

from aggregator.errors import StoreUnavailable
from aggregator.index import keys
from aggregator.ingest.activity import POLL_INTERVAL_S, PUBLISH_INTERVAL_S, ActivityBeacon
from aggregator.ingest.throttle import QUIET_AFTER_S
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore


class Clock:
    """Two clocks of one time: seconds for who looks, ms for the store."""

    def __init__(self) -> None:
        self.s = 1000.0

    def seconds(self) -> float:
        """Now."""
        return self.s

    def ms(self) -> int:
        """Now."""
        return int(self.s * 1000)


async def told(presence: ActivityBeacon) -> None:
    """What is being told has arrived."""
    if presence._publish_task is not None:
        await presence._publish_task


async def test_nobody_arrived() -> None:
    """For ever ago."""
    assert await ActivityBeacon(MemoryStore()).seconds_since_last() == math.inf


async def test_another_process_hears_of_them(store: Store) -> None:
    """On any store; the process itself knows without asking."""
    service, load = ActivityBeacon(store), ActivityBeacon(store)
    service.record_arrival()
    await told(service)

    assert await load.seconds_since_last() == 0.0
    assert await service.seconds_since_last() < QUIET_AFTER_S


async def test_they_are_forgotten() -> None:
    """Time since the newest grows, until the note has vanished and beyond; a further one begins anew."""
    clock = Clock()
    store = MemoryStore(clock=clock.ms)
    service, load = (ActivityBeacon(store, clock_s=clock.seconds) for _ in range(2))
    service.record_arrival()
    await told(service)
    since = []
    for _ in range(3):
        since.append(await load.seconds_since_last())
        clock.s += QUIET_AFTER_S
    service.record_arrival()
    await told(service)

    assert since == [0.0, QUIET_AFTER_S, 2 * QUIET_AFTER_S]
    assert await load.seconds_since_last() == 0.0


async def test_many_articles_are_few_notes_and_few_questions() -> None:
    """At most one write in TELL_S, one read in ASK_S."""
    clock = Clock()
    store = MemoryStore(clock=clock.ms)
    service, load = (ActivityBeacon(store, clock_s=clock.seconds) for _ in range(2))
    notes, heard = set(), []
    for _ in range(100):
        service.record_arrival()
        await told(service)
        notes.add((await store.read([keys.INTERACTIVE_BEACON]))[0])
        heard.append(await load.seconds_since_last())
        clock.s += PUBLISH_INTERVAL_S / 10

    assert len(notes) == 10
    assert max(heard) <= PUBLISH_INTERVAL_S + POLL_INTERVAL_S


class Away(MemoryStore):
    """Cannot be reached."""

    async def put(self, *_: object, **__: object) -> list[bool]:
        """No."""
        raise StoreUnavailable("The store is away.")

    async def read(self, *_: object) -> list[bytes | None]:
        """No."""
        raise StoreUnavailable("The store is away.")


async def test_a_store_that_is_away_is_no_matter() -> None:
    """What works beside it says so itself."""
    presence = ActivityBeacon(Away())
    presence.record_arrival()
    await told(presence)

    assert await presence.seconds_since_last() < QUIET_AFTER_S
    assert await ActivityBeacon(Away()).seconds_since_last() == math.inf
    await presence.close()
    await presence.close()
