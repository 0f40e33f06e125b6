"""Lease: one holder at a time, released or expired."""

from __future__ import annotations

from aggregator.store.lease import Lease
from aggregator.store.memory import MemoryStore


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
