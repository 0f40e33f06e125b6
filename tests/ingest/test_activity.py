"""Single articles in one process are known to the loads of another one on the same store."""

from __future__ import annotations

import math

from aggregator.errors import StoreUnavailable
from aggregator.index import keys
from aggregator.ingest.activity import ASK_S, TELL_S, Presence
from aggregator.ingest.throttle import CALM_S
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


async def told(presence: Presence) -> None:
    """What is being told has arrived."""
    if presence._telling is not None:
        await presence._telling


async def test_nobody_arrived() -> None:
    """For ever ago."""
    assert await Presence(MemoryStore()).since_s() == math.inf


async def test_another_process_hears_of_them(store: Store) -> None:
    """On any store; the process itself knows without asking."""
    service, load = Presence(store), Presence(store)
    service.arrived()
    await told(service)

    assert await load.since_s() == 0.0
    assert await service.since_s() < CALM_S


async def test_they_are_forgotten() -> None:
    """Time since the newest grows, until the note has vanished and beyond; a further one begins anew."""
    clock = Clock()
    store = MemoryStore(clock=clock.ms)
    service, load = (Presence(store, clock_s=clock.seconds) for _ in range(2))
    service.arrived()
    await told(service)
    since = []
    for _ in range(3):
        since.append(await load.since_s())
        clock.s += CALM_S
    service.arrived()
    await told(service)

    assert since == [0.0, CALM_S, 2 * CALM_S]
    assert await load.since_s() == 0.0


async def test_many_articles_are_few_notes_and_few_questions() -> None:
    """At most one write in TELL_S, one read in ASK_S."""
    clock = Clock()
    store = MemoryStore(clock=clock.ms)
    service, load = (Presence(store, clock_s=clock.seconds) for _ in range(2))
    notes, heard = set(), []
    for _ in range(100):
        service.arrived()
        await told(service)
        notes.add((await store.read([keys.SINGLES]))[0])
        heard.append(await load.since_s())
        clock.s += TELL_S / 10

    assert len(notes) == 10
    assert max(heard) <= TELL_S + ASK_S


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
    presence = Presence(Away())
    presence.arrived()
    await told(presence)

    assert await presence.since_s() < CALM_S
    assert await Presence(Away()).since_s() == math.inf
    await presence.close()
    await presence.close()
