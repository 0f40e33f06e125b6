"""Activity beacon: processes on one store see each other's interactive articles."""

from __future__ import annotations

import math

from aggregator.errors import StoreUnavailable
from aggregator.ingest.activity import BEACON_KEY, POLL_INTERVAL_S, PUBLISH_INTERVAL_S, ActivityBeacon
from aggregator.ingest.throttle import QUIET_AFTER_S
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore


class Clock:
    """One time, in seconds for the beacon and in ms for the store."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def seconds(self) -> float:
        """The time in seconds."""
        return self.now_s

    def ms(self) -> int:
        """The time in ms."""
        return int(self.now_s * 1000)


async def published(beacon: ActivityBeacon) -> None:
    """Wait until the beacon has written its marker."""
    if beacon._publish_task is not None:
        await beacon._publish_task


async def test_without_arrivals_the_last_one_is_infinitely_long_ago() -> None:
    """A new beacon on an empty store."""
    assert await ActivityBeacon(MemoryStore()).seconds_since_last() == math.inf


async def test_another_process_sees_an_arrival(store: Store) -> None:
    """On any store; the process itself knows without reading."""
    server, bulk = ActivityBeacon(store), ActivityBeacon(store)
    server.record_arrival()
    await published(server)

    assert await bulk.seconds_since_last() == 0.0
    assert await server.seconds_since_last() < QUIET_AFTER_S


async def test_the_age_of_the_last_arrival_grows_after_the_marker_expired() -> None:
    """Beyond the expiry of the marker too; a later arrival resets it."""
    clock = Clock()
    store = MemoryStore(clock=clock.ms)
    server, bulk = (ActivityBeacon(store, clock_s=clock.seconds) for _ in range(2))
    server.record_arrival()
    await published(server)
    ages = []
    for _ in range(3):
        ages.append(await bulk.seconds_since_last())
        clock.now_s += QUIET_AFTER_S
    server.record_arrival()
    await published(server)

    assert ages == [0.0, QUIET_AFTER_S, 2 * QUIET_AFTER_S]
    assert await bulk.seconds_since_last() == 0.0


async def test_many_arrivals_cause_few_writes_and_reads() -> None:
    """At most one write per PUBLISH_INTERVAL_S and one read per POLL_INTERVAL_S."""
    clock = Clock()
    store = MemoryStore(clock=clock.ms)
    server, bulk = (ActivityBeacon(store, clock_s=clock.seconds) for _ in range(2))
    markers, ages = set(), []
    for _ in range(100):
        server.record_arrival()
        await published(server)
        markers.add((await store.read([BEACON_KEY]))[0])
        ages.append(await bulk.seconds_since_last())
        clock.now_s += PUBLISH_INTERVAL_S / 10

    assert len(markers) == 10
    assert max(ages) <= PUBLISH_INTERVAL_S + POLL_INTERVAL_S


class UnavailableStore(MemoryStore):
    """A store that cannot be reached."""

    async def put(self, *_: object, **__: object) -> list[bool]:
        """Fails."""
        raise StoreUnavailable("The store is unavailable.")

    async def read(self, *_: object) -> list[bytes | None]:
        """Fails."""
        raise StoreUnavailable("The store is unavailable.")


async def test_an_unavailable_store_is_ignored() -> None:
    """Arrivals in the same process still count; closing twice is allowed."""
    beacon = ActivityBeacon(UnavailableStore())
    beacon.record_arrival()
    await published(beacon)

    assert await beacon.seconds_since_last() < QUIET_AFTER_S
    assert await ActivityBeacon(UnavailableStore()).seconds_since_last() == math.inf
    await beacon.close()
    await beacon.close()
