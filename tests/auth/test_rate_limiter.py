"""Rate limiter: token buckets of API keys, shared by processes."""

from __future__ import annotations

import asyncio

import pytest

from aggregator.auth.rate_limiter import RateLimiter
from aggregator.errors import RateLimited
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.store_steps import scan
from tests.support.stores import open_patient_store


class Clock:
    """A manual clock."""

    now_ms = 1_790_000_000_000

    def __call__(self) -> int:
        return self.now_ms


async def count_passed(limiter: RateLimiter, requests: int, key: str = "k", tokens: int = 1) -> int:
    """Number of ``requests`` that the limiter admits."""
    passed = 0
    for _ in range(requests):
        try:
            await limiter.acquire(key, tokens)
            passed += 1
        except RateLimited:
            pass
    return passed


async def test_a_bucket_holds_two_seconds_and_refills(store: Store) -> None:
    """At 10 per second: a burst of 20, then 10 in each second; each key has its own bucket."""
    clock = Clock()
    limiter = RateLimiter(store, clock, 10)

    assert await count_passed(limiter, 50) == 20
    assert await count_passed(limiter, 50, "other") == 20
    for _ in range(5):
        clock.now_ms += 1000
        assert await count_passed(limiter, 50) in (10, 11)


async def test_parts_of_a_batch_that_wait_together_pay_each_for_itself(valkey_url: str) -> None:
    """Eight at a time, every 2.5 s, pass what the rate allows and the last eight, not 2,800 for 500."""
    clock, spent = Clock(), 0
    store = open_patient_store(valkey_url)  # its answers take time, as those of one in memory do not
    limiter = RateLimiter(store, clock, 5)
    for _ in range(40):
        clock.now_ms += 2500
        if await count_passed(limiter, 1):
            parts = [limiter.acquire("k", 25) for _ in range(8)]
            spent += 25 * (await asyncio.gather(*parts, return_exceptions=True)).count(None)
    await store.close()

    assert 400 <= spent <= 2 * 5 + 5 * 100 + 8 * 25


async def test_processes_share_a_bucket(store: Store) -> None:
    """Two processes together get no more than one process."""
    clock = Clock()
    limiters = RateLimiter(store, clock, 10), RateLimiter(store, clock, 10)
    passed = sum([await count_passed(limiter, 1) for _ in range(30) for limiter in limiters])

    assert passed == 20


async def test_the_error_contains_the_time_to_retry(store: Store) -> None:
    """In whole seconds; a request after that time passes."""
    clock = Clock()
    limiter = RateLimiter(store, clock, 0.25)
    await limiter.acquire("k")

    with pytest.raises(RateLimited) as caught:
        await limiter.acquire("k")
    assert caught.value.retry_after_s == 4
    clock.now_ms += 4000
    await limiter.acquire("k")


async def test_a_large_batch_leaves_a_debt(store: Store) -> None:
    """A batch may exceed the bucket; nothing else passes until the bucket has refilled, in any process."""
    clock = Clock()
    limiter = RateLimiter(store, clock, 10)
    await limiter.acquire("k", 100)

    assert await count_passed(limiter, 5) == 0
    clock.now_ms += 1000
    assert await count_passed(RateLimiter(store, clock, 10), 1) == 0
    clock.now_ms += 9000
    assert await count_passed(limiter, 5) > 0


async def test_a_clock_that_is_set_back_blocks_no_key(store: Store) -> None:
    """Neither in the process that rejected requests nor in the bucket; a small clock skew gains nothing."""
    clock, behind = Clock(), Clock()
    behind.now_ms -= 1000
    limiter, other = RateLimiter(store, clock, 10), RateLimiter(store, behind, 10)
    assert await count_passed(limiter, 50) == 20
    assert await count_passed(other, 50) == 0

    clock.now_ms -= 3_600_000
    assert await count_passed(limiter, 50) == 0
    clock.now_ms += 1000
    assert await count_passed(limiter, 50) in (10, 11)
    clock.now_ms += 1000
    assert await count_passed(RateLimiter(store, clock, 10), 50) in (10, 11)


async def test_an_unlimited_rate_does_not_use_the_store() -> None:
    """Rate 0 disables the limiter."""
    store = MemoryStore()
    await RateLimiter(store, Clock(), 0).acquire("k")

    assert await scan(store, b"") == []
