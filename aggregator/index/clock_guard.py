"""Clock guard: advances the trusted time in the store, refuses writes under an implausible wall clock.

Every process has one. Each advances the trusted time from what it read by what elapsed since; whoever is
first writes it, in a compare-and-write. So any number of processes raise it no faster than one, a process
with a wrong clock refuses writes and changes nothing, and a restart gains nothing.

    {clock}trusted    ``TrustedTime``; absent until the first article is stored
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from aggregator.domain import arrival_ms_of
from aggregator.errors import ImplausibleClock
from aggregator.index.codec.format_byte import PLAIN, decode_formatted
from aggregator.index.index import Index
from aggregator.index.trusted_time import (
    TrustedTime,
    find_clock_problem,
    find_store_difference,
)
from aggregator.store.base import Put, Store, Transaction, ValueEquals
from aggregator.time_units import DAY_MS, MINUTE_MS, SECOND_MS

TRUSTED_TIME_KEY = b"{clock}trusted"
# An observation this old is repeated before a write.
OBSERVATION_MAX_AGE_MS = 5 * SECOND_MS
# One this old is repeated before a write is refused: the clock, or that of the store, may be right again.
REFUSAL_MAX_AGE_MS = SECOND_MS // 2
# Event detection ends events by the wall clock. After a leap it waits, in case the clock is corrected.
DOUBTFUL_FROM_MS = DAY_MS
SETTLING_MS = 10 * MINUTE_MS

_decoder = msgspec.msgpack.Decoder(TrustedTime)


def boot_clock_ms() -> int:
    """Milliseconds since the machine started, suspension included; unrelated to the time of day."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1_000_000


class ClockGuard:
    """One process's view of the trusted time. ``clock``: wall clock; ``boot_clock``: elapsed time; in ms.

    ``problem``: why the wall clock is implausible, as of the last observation, as one sentence.
    """

    def __init__(
        self, index: Index, clock: Callable[[], int], boot_clock: Callable[[], int] | None = None
    ) -> None:
        self._index = index
        self._clock = clock
        self._boot_clock = boot_clock or boot_clock_ms
        self._raw: bytes | None = None
        self._state: TrustedTime | None = None  # what was read, advanced
        self._anchor_ms = 0  # boot clock at which ``_state`` holds
        self._floor_ms = 0
        self._store_ms: int | None = None
        self._observed_ms: int | None = None  # boot clock
        self._doubtful_since_ms: int | None = None  # boot clock
        self._lock = asyncio.Lock()
        self.problem: str | None = None

    @property
    def trusted_ms(self) -> int | None:
        """The trusted time; None until it was observed, and before the first article."""
        return self._state.trusted_ms if self._state is not None else None

    @property
    def lag_ms(self) -> int:
        """How far the trusted time is behind the wall clock, or ahead of it (negative); 0 if unknown."""
        return self._clock() - self._state.trusted_ms if self._state is not None else 0

    async def observe(self) -> str | None:
        """Read the stored state, judge the wall clock, advance the trusted time; returns ``problem``.

        Raises StoreUnavailable.
        """
        async with self._lock:
            await self._read()
            self.problem = self._judge()
            if self.problem is None:
                await self._advance()
            elif self._state is not None:
                # Time under an implausible clock gives no credit: it is made up like any other gap.
                self._anchor_ms = self._boot_clock()
            self._note_doubt()
            return self.problem

    async def ensure_plausible(self) -> None:
        """Raise ImplausibleClock while the wall clock is implausible; call before every write."""
        problem = await self._recent_problem()
        if problem is not None:
            raise ImplausibleClock(f"Nothing is stored under an implausible clock. {problem}")

    async def pause_reason(self) -> str | None:
        """Why work that ends or removes something by the wall clock must pause now; None if it need not."""
        problem = await self._recent_problem()
        if problem is not None or self._doubtful_since_ms is None:
            return problem
        if self._boot_clock() - self._doubtful_since_ms >= SETTLING_MS:
            return None
        return (
            "The clock of this machine leapt by more than a day since this data was last in use; "
            f"continuing in {SETTLING_MS // MINUTE_MS} minutes unless it is corrected."
        )

    async def accept(self) -> None:
        """Declare the wall clock right: the repair after a wrong clock, or after a long time without power.

        The trusted time and the floors fall to what the wall clock allows; they rise no faster than ever.
        """
        async with self._lock:
            now_ms = self._clock()
            await self._read()
            trusted_ms = min(now_ms, self._state.trusted_ms) if self._state is not None else now_ms
            await self._index.store.put([_encode(TrustedTime(trusted_ms, now_ms))])
            floor = self._index.retention.floor_at(now_ms)
            for space in self._index.all_spaces:
                await self._index.segments.lower_floor(space, floor)
        await self.observe()

    async def _recent_problem(self) -> str | None:
        """``problem``, judged again by the clock of this moment; the store is read if that was long ago."""
        if self._observed_ms is None:
            return await self.observe()
        problem = self.problem or self._judge()
        max_age_ms = OBSERVATION_MAX_AGE_MS if problem is None else REFUSAL_MAX_AGE_MS
        if self._boot_clock() - self._observed_ms > max_age_ms:
            return await self.observe()
        return problem

    async def _read(self) -> None:
        store = self._index.store
        raw = (await store.read([TRUSTED_TIME_KEY]))[0]
        stacks = await self._index.segments.refresh_all(self._index.all_spaces)
        self._floor_ms = max((arrival_ms_of(stack.floor) for stack in stacks), default=0)
        self._store_ms = await store.time_ms()
        now_ms = self._boot_clock()
        if raw is None:
            newest_ms = await self._newest_arrival_ms()
            self._state = TrustedTime(newest_ms, newest_ms) if newest_ms is not None else None
            self._raw, self._anchor_ms = None, now_ms
        elif raw != self._raw:
            self._state = _decode(raw)
            self._raw, self._anchor_ms = raw, now_ms
        self._observed_ms = now_ms

    async def _newest_arrival_ms(self) -> int | None:
        """Arrival of the newest article, for a store that is new or was written by an earlier version."""
        newest = await self._index.stream.recent_entries(1)
        return arrival_ms_of(newest[0].number) if newest else None

    def _judge(self) -> str | None:
        wall_ms, boot_ms = self._clock(), self._boot_clock()
        if self._store_ms is not None and self._observed_ms is not None:
            store_ms = self._store_ms + boot_ms - self._observed_ms
            if difference := find_store_difference(wall_ms, store_ms):
                return difference
        if self._state is None:
            return None
        return find_clock_problem(
            self._state,
            wall_ms,
            boot_ms - self._anchor_ms,
            floor_ms=self._floor_ms,
            period_ms=self._index.retention.period_ms,
        )

    async def _advance(self) -> None:
        if self._state is None:
            return
        wall_ms, boot_ms = self._clock(), self._boot_clock()
        self._state = self._state.advance(wall_ms, boot_ms - self._anchor_ms)
        self._anchor_ms = boot_ms
        if self._raw is None:
            self._state = TrustedTime(min(self._state.trusted_ms, wall_ms), wall_ms)
        elif not _decode(self._raw).is_step(self._state):
            return
        put = _encode(self._state)
        if not await self._index.store.commit(Transaction((ValueEquals(put.key, self._raw),), (put,))):
            self._raw = put.value

    def _note_doubt(self) -> None:
        if self._state is None or abs(self.lag_ms) <= DOUBTFUL_FROM_MS:
            self._doubtful_since_ms = None
        elif self._doubtful_since_ms is None or self.problem is not None:
            self._doubtful_since_ms = self._boot_clock()


async def read_last_use_ms(store: Store) -> int | None:
    """When the data of a store was last in use under a plausible clock; None if that is not stored."""
    raw = (await store.read([TRUSTED_TIME_KEY]))[0]
    return _decode(raw).seen_ms if raw is not None else None


def _decode(raw: bytes) -> TrustedTime:
    return decode_formatted(_decoder, raw, "The trusted time")


def _encode(state: TrustedTime) -> Put:
    return Put(TRUSTED_TIME_KEY, PLAIN + msgspec.msgpack.encode(state))
