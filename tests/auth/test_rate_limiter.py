"""allowance.py: the token buckets of keys, shared by processes."""

from __future__ import annotations

import pytest

from aggregator.auth.rate_limiter import RateLimiter
from aggregator.errors import RateLimited
from aggregator.store.base import Store


class Clock:
    """A clock that tests turn."""

    now_ms = 1_790_000_000_000

    def __call__(self) -> int:
        return self.now_ms


async def spent(allowance: RateLimiter, clock: Clock, requests: int, key: str = "k", tokens: int = 1) -> int:
    """How many of ``requests`` pass."""
    passed = 0
    for _ in range(requests):
        try:
            await allowance.acquire(key, tokens)
            passed += 1
        except RateLimited:
            pass
    return passed


async def test_a_bucket_holds_two_seconds_and_refills(store: Store) -> None:
    """20 at once at 10 a second, then 10 in each second; another key has its own."""
    clock = Clock()
    allowance = RateLimiter(store, clock, 10)

    assert await spent(allowance, clock, 50) == 20
    assert await spent(allowance, clock, 50, "other") == 20
    for _ in range(5):
        clock.now_ms += 1000
        assert await spent(allowance, clock, 50) in (10, 11)


async def test_processes_share_a_bucket(store: Store) -> None:
    """Two of them together get no more than one."""
    clock = Clock()
    one, two = RateLimiter(store, clock, 10), RateLimiter(store, clock, 10)
    passed = sum([await spent(each, clock, 1) for _ in range(30) for each in (one, two)])

    assert passed == 20


async def test_the_refusal_says_when_to_come_back(store: Store) -> None:
    """Retry-After in whole seconds; after it the request passes."""
    clock = Clock()
    allowance = RateLimiter(store, clock, 0.25)
    await allowance.acquire("k")

    with pytest.raises(RateLimited) as refusal:
        await allowance.acquire("k")
    assert refusal.value.retry_after_s == 4
    clock.now_ms += 4000
    await allowance.acquire("k")


async def test_a_large_batch_is_paid_off_afterwards(store: Store) -> None:
    """What was begun is finished; nothing else passes until the debt is paid, in any process."""
    clock = Clock()
    allowance = RateLimiter(store, clock, 10)
    await allowance.acquire("k", 100)

    assert await spent(allowance, clock, 5) == 0
    clock.now_ms += 1000
    assert await spent(RateLimiter(store, clock, 10), clock, 1) == 0
    clock.now_ms += 9000
    assert await spent(allowance, clock, 5) > 0


async def test_a_clock_that_is_set_back_locks_nobody_out(store: Store) -> None:
    """Not in the process that had said no, nor by the bucket; clocks that differ a little gain nothing."""
    clock, behind = Clock(), Clock()
    behind.now_ms -= 1000
    allowance, other = RateLimiter(store, clock, 10), RateLimiter(store, behind, 10)
    assert await spent(allowance, clock, 50) == 20
    assert await spent(other, behind, 50) == 0

    clock.now_ms -= 3_600_000
    assert await spent(allowance, clock, 50) == 0
    clock.now_ms += 1000
    assert await spent(allowance, clock, 50) in (10, 11)
    clock.now_ms += 1000
    assert await spent(RateLimiter(store, clock, 10), clock, 50) in (10, 11)


async def test_no_limit_asks_the_store_nothing() -> None:
    """Rate 0 is off."""
    await RateLimiter(None, Clock(), 0).acquire("k")
