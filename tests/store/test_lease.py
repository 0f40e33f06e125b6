"""Lease: one holder at a time, released or expired."""

from __future__ import annotations

from aggregator.store.lease import Lease
from aggregator.store.memory import MemoryStore


async def test_one_replica_holds_it_until_it_is_released() -> None:
    """The holder renews it; another replica acquires it as soon as it is free."""
    store = MemoryStore()
    one, two = Lease(store, b"l", 60_000), Lease(store, b"l", 60_000)

    assert await one.acquire() and await one.acquire()
    assert not await two.acquire() and (one.is_held, two.is_held) == (True, False)
    await two.release()
    assert not await two.acquire()
    await one.release()
    await one.release()
    assert await two.acquire() and not one.is_held


async def test_it_expires() -> None:
    """It is free exactly after ``ttl_ms``; a late release by the former holder changes nothing."""
    now_ms = [0]
    store = MemoryStore(clock=lambda: now_ms[0])
    one, two = Lease(store, b"l", 100), Lease(store, b"l", 100)
    assert await one.acquire()

    now_ms[0] = 99
    assert not await two.acquire()
    now_ms[0] = 100
    assert await two.acquire()
    await one.release()
    assert await two.acquire()
