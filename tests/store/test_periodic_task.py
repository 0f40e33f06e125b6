"""Lease: one holder at a time, released or expired."""

from __future__ import annotations

import asyncio

from aggregator.store.memory import MemoryStore
from aggregator.store.periodic_task import Lease


async def test_one_replica_holds_it_until_it_is_released() -> None:
    """The holder renews it; another replica acquires it as soon as it is free."""
    store = MemoryStore()
    first, second = Lease(store, b"l", 60_000), Lease(store, b"l", 60_000)

    assert await first.acquire() and await first.acquire()
    assert not await second.acquire() and (first.is_held, second.is_held) == (True, False)
    await second.release()
    assert not await second.acquire()
    await first.release()
    await first.release()
    assert await second.acquire() and not first.is_held


async def test_it_expires() -> None:
    """It is free exactly after ``ttl_ms``; a late release by the former holder changes nothing."""
    now_ms = [0]
    store = MemoryStore(clock=lambda: now_ms[0])
    first, second = Lease(store, b"l", 100), Lease(store, b"l", 100)
    assert await first.acquire()

    now_ms[0] = 99
    assert not await second.acquire()
    now_ms[0] = 100
    assert await second.acquire()
    await first.release()
    assert await second.acquire()


async def test_a_holder_that_died_while_the_clock_was_ahead_blocks_nobody() -> None:
    """The key expires in 40 minutes only; a replica that waited ``ttl_ms`` by its own clock takes over."""
    now_ms, monotonic_s = [40 * 60_000], [0.0]
    store = MemoryStore(clock=lambda: now_ms[0])
    dead = Lease(store, b"l", 3000)
    assert await dead.acquire()
    now_ms[0] = 0  # the clock is right again, and the holder dies
    other = Lease(store, b"l", 3000, monotonic=lambda: monotonic_s[0])

    for monotonic_s[0] in (10.0, 11.0, 12.9):
        assert not await other.acquire()
    monotonic_s[0] = 13.0
    assert await other.acquire()
    assert not await dead.acquire()


async def test_a_holder_that_renews_is_not_replaced() -> None:
    """Each renewal counts, however long the other replica has waited in all."""
    monotonic_s = [0.0]
    store = MemoryStore(clock=lambda: 0)
    holder, other = Lease(store, b"l", 3000), Lease(store, b"l", 3000, monotonic=lambda: monotonic_s[0])

    for _ in range(20):
        assert await holder.acquire()
        monotonic_s[0] += 2.9
        assert not await other.acquire()


async def test_of_two_that_take_over_one_wins() -> None:
    """Both have seen that the holder is gone; a renewal whose outcome is unknown does not lose the lease."""
    monotonic_s = [0.0]
    store = MemoryStore(clock=lambda: 0)
    assert await Lease(store, b"l", 3000).acquire()
    others = [Lease(store, b"l", 3000, monotonic=lambda: monotonic_s[0]) for _ in range(4)]
    assert not any([await lease.acquire() for lease in others])
    monotonic_s[0] = 3.0

    assert sum(await asyncio.gather(*(lease.acquire() for lease in others))) == 1
    assert sum(await asyncio.gather(*(lease.acquire() for lease in others))) == 1
