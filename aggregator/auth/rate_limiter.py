"""Rate limiter: a token bucket per API key in the store, shared by all processes.

A bucket refills at ``rate`` tokens per second up to its burst size. A process prefetches up to ``PREFETCH_S``
worth of tokens by compare-and-set and spends them locally, so one round trip pays for many requests. The cost
of a request (the lines of a batch) may be known only after its start, so a bucket can have a negative
balance: the key is then limited until the bucket has refilled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from aggregator.errors import CommitConflict, RateLimited
from aggregator.store.base import Store
from aggregator.store.optimistic import StoredValue, ValueFormat

PREFETCH_S = 0.2
MAX_ATTEMPTS = 8
CONFLICT_RETRY_MS = 100
MAX_PREFETCHED = 10_000  # keys, or addresses of one
# Clocks of machines differ by less; a bucket from further in the future dates from a clock that was set back.
MAX_CLOCK_SKEW_MS = 2000


class _Bucket(msgspec.Struct, frozen=True, array_like=True):
    tokens: float
    at_ms: int


_FORMAT = ValueFormat[_Bucket | None](
    msgspec.msgpack.Decoder(_Bucket | None),
    "The token bucket",
    lambda: None,  # absent: full
)


@dataclass(slots=True)
class _PrefetchedTokens:
    tokens: float = 0.0
    expires_ms: int = 0  # unspent tokens are lost then
    exhausted_until_ms: int = 0  # the bucket is empty until then
    retry_after_ms: int = 0  # wait when ``exhausted_until_ms`` was set


class RateLimiter:
    """Limits each key to ``rate`` tokens per second (0: unlimited), with bursts of 2 s or one token."""

    def __init__(self, store: Store, clock: Callable[[], int], rate: float) -> None:
        self._store, self._clock, self._rate = store, clock, rate
        self._burst = max(1.0, 2 * rate)
        self._prefetched: dict[str, _PrefetchedTokens] = {}

    async def acquire(self, key_id: str, tokens: int = 1) -> None:
        """Spend ``tokens`` of a key. Raises RateLimited if its bucket is empty; nothing is spent then."""
        if not self._rate:
            return
        share = self._prefetched.setdefault(key_id, _PrefetchedTokens())
        if len(self._prefetched) > MAX_PREFETCHED:
            del self._prefetched[next(iter(self._prefetched))]
        now_ms = self._clock()
        if share.tokens > 0 and now_ms < share.expires_ms:
            share.tokens -= tokens
            return
        # Without the upper bound, a clock that was set back would block the key for as long.
        if 0 < share.exhausted_until_ms - now_ms <= share.retry_after_ms:
            raise _limit_exceeded(self._rate, share.exhausted_until_ms - now_ms)
        debt = min(share.tokens, 0.0)
        most = max(1.0, self._rate * PREFETCH_S)
        share.tokens = 0.0  # the debt is charged to the bucket once (or forgiven, after a commit conflict)
        fetched, wait_ms = await self._fetch_tokens(key_id, most, debt, now_ms)
        if not fetched:
            share.exhausted_until_ms, share.retry_after_ms = now_ms + wait_ms, wait_ms
            raise _limit_exceeded(self._rate, wait_ms)
        share.tokens += fetched - tokens  # others of this key may have spent or fetched meanwhile
        share.expires_ms = now_ms + 1000

    async def _fetch_tokens(
        self, key_id: str, max_tokens: float, debt: float, now_ms: int
    ) -> tuple[float, int]:
        """Take up to ``max_tokens``, settle ``debt`` (<= 0): tokens taken, ms until there is one."""

        def change(bucket: _Bucket | None) -> tuple[_Bucket | None, tuple[float, int]]:
            balance, at_ms = (bucket.tokens, bucket.at_ms) if bucket else (self._burst, now_ms)
            set_back = at_ms - now_ms > MAX_CLOCK_SKEW_MS
            at_ms = now_ms if set_back else at_ms
            balance = min(self._burst, balance + max(0, now_ms - at_ms) / 1000 * self._rate) + debt
            taken = min(max_tokens, balance) if balance >= 1 else 0.0
            wait_ms = math.ceil(max(0.0, 1 - balance) / self._rate * 1000)
            changed = _Bucket(balance - taken, max(now_ms, at_ms)) if taken or debt or set_back else bucket
            return changed, (taken, wait_ms)

        bucket = StoredValue(self._store, b"{access:%s}tokens" % key_id.encode(), _FORMAT, self._ttl_ms)
        try:
            return await bucket.edit_with_result(change, MAX_ATTEMPTS)
        except CommitConflict:
            # Many processes spend tokens of one key: it exceeds its limit, too.
            return 0.0, CONFLICT_RETRY_MS

    def _ttl_ms(self, bucket: _Bucket | None) -> int:
        """At least the time until the bucket is full; it may expire then: an absent bucket is full."""
        balance = bucket.tokens if bucket else 0.0
        return 1000 + int((2 * self._burst - balance) / self._rate * 1000)


def _limit_exceeded(rate: float, retry_after_ms: int) -> RateLimited:
    error = RateLimited(
        f"This key (without one: this address) exceeds {rate:g} articles or requests per second; see "
        "rate_limit_per_second, and for pages related_rate_limit_per_second, where each id of a batch counts."
    )
    error.retry_after_s = max(1, math.ceil(retry_after_ms / 1000))
    return error
