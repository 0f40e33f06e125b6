"""A lease: held by one, given back, or running out by itself."""

from __future__ import annotations

from aggregator.store.lease import Lease
from aggregator.store.memory import MemoryStore


async def test_one_holds_it_until_it_is_given_back() -> None:
    """The holder renews; another gets it as soon as it is free."""
    store = MemoryStore()
    one, two = Lease(store, b"l", 60_000), Lease(store, b"l", 60_000)

    assert await one.take() and await one.take()
    assert not await two.take() and (one.held, two.held) == (True, False)
    await two.give_back()
    assert not await two.take()
    await one.give_back()
    await one.give_back()
    assert await two.take() and not one.held


async def test_it_runs_out() -> None:
    """At ``ttl_ms`` exactly it is free, whoever held it."""
    now_ms = [0]
    store = MemoryStore(clock=lambda: now_ms[0])
    one, two = Lease(store, b"l", 100), Lease(store, b"l", 100)
    assert await one.take()

    now_ms[0] = 99
    assert not await two.take()
    now_ms[0] = 100
    assert await two.take()
    await one.give_back()
    assert await two.take()
