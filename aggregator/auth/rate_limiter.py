"""How much a key may still ask: a token bucket per key in the store, shared by all processes.

A bucket fills with ``rate`` tokens per second up to ``burst``. A process takes tokens out in shares of up to a fifth
of a second's worth, by compare-and-set, and spends them at no cost: one round trip buys many requests. What it costs
(the lines of a batch) may be told after it was begun, so a bucket can go into debt: who owes waits until it is paid.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from aggregator.errors import RateLimited
from aggregator.store.base import Put, Store, Transaction, ValueEquals

PREFETCH_S = 0.2
MAX_ATTEMPTS = 8
# Clocks of machines differ by less; a bucket from further ahead was left by a clock that was set back since.
MAX_CLOCK_SKEW_MS = 2000
_BUCKET_FORMAT = struct.Struct("<dq")  # tokens, at ms


@dataclass(slots=True)
class _PrefetchedTokens:
    tokens: float = 0.0
    expires_ms: int = 0  # what was not spent by then is lost
    exhausted_until_ms: int = 0  # the store need not be asked before,
    retry_after_ms: int = 0  # which was so far away when it was said


class RateLimiter:
    """``rate`` 0 asks nobody for anything. A bucket holds two seconds' worth, and at least one request."""

    def __init__(self, store: Store, clock: Callable[[], int], rate: float) -> None:
        self._store, self._clock, self._rate = store, clock, rate
        self._burst = max(1.0, 2 * rate)
        self._prefetched: dict[str, _PrefetchedTokens] = {}

    async def acquire(self, key_id: str, tokens: int = 1) -> None:
        """Raises OverLimit when nothing is left; then nothing was taken."""
        if not self._rate:
            return
        share = self._prefetched.setdefault(key_id, _PrefetchedTokens())
        now_ms = self._clock()
        if share.tokens > 0 and now_ms < share.expires_ms:
            share.tokens -= tokens
            return
        if (
            0 < share.exhausted_until_ms - now_ms <= share.retry_after_ms
        ):  # else the clock was set back meanwhile
            raise _limit_exceeded(self._rate, share.exhausted_until_ms - now_ms)
        debt = min(share.tokens, 0.0)
        got, wait_ms = await self._fetch_tokens(key_id, max(1.0, self._rate * PREFETCH_S), debt, now_ms)
        share.tokens = 0.0  # a debt has been paid with it
        if not got:
            share.exhausted_until_ms, share.retry_after_ms = now_ms + wait_ms, wait_ms
            raise _limit_exceeded(self._rate, wait_ms)
        share.tokens, share.expires_ms = got - tokens, now_ms + 1000

    async def _fetch_tokens(
        self, key_id: str, max_tokens: float, debt: float, now_ms: int
    ) -> tuple[float, int]:
        """Up to ``wanted`` tokens, or none and the ms until there is one."""
        key = b"{access:%s}tokens" % key_id.encode()
        for _ in range(MAX_ATTEMPTS):
            raw = (await self._store.read([key]))[0]
            left, at_ms = _BUCKET_FORMAT.unpack(raw) if raw else (self._burst, now_ms)
            set_back = at_ms - now_ms > MAX_CLOCK_SKEW_MS
            at_ms = now_ms if set_back else at_ms
            left = min(self._burst, left + max(0, now_ms - at_ms) / 1000 * self._rate) + debt
            got = min(max_tokens, left) if left >= 1 else 0.0
            if not (got or debt or set_back):
                return 0.0, math.ceil((1 - left) / self._rate * 1000)
            new = Put(key, _BUCKET_FORMAT.pack(left - got, max(now_ms, at_ms)), self._ttl_ms(left))
            if not await self._store.commit(Transaction((ValueEquals(key, raw),), (new,))):
                return got, math.ceil(max(0.0, 1 - left) / self._rate * 1000)
        return 0.0, 100  # many processes at one key: that is over the limit, too

    def _ttl_ms(self, tokens: float) -> int:
        """Until it is full again: a full bucket and none at all are the same."""
        return 1000 + int((self._burst - tokens + self._burst) / self._rate * 1000)


def _limit_exceeded(rate: float, retry_after_ms: int) -> RateLimited:
    error = RateLimited(
        f"This key asks for more than {rate:g} articles or requests per second (setting rate_limit_per_second)."
    )
    error.retry_after_s = max(1, math.ceil(retry_after_ms / 1000))
    return error
