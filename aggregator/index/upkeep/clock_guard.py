"""Clock guard: the time that retention goes by, and a refusal of writes under an implausible wall clock.

The store holds two times (docs/design/segments.md, "A wrong clock"): ``trusted_ms`` and ``seen_ms``, the
latest wall clock that was plausible. Each process advances the trusted time from what it read, in a
compare-and-write, so any number of them raise it no faster than one.

    {clock}trusted    ``TrustedTime``; absent until the first article is stored
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from aggregator.domain import arrival_ms_of
from aggregator.errors import ImplausibleClock
from aggregator.index import Index
from aggregator.store.base import Put
from aggregator.store.decoding import PLAIN
from aggregator.store.optimistic import StoredValue, ValueFormat
from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_rfc3339

# Real time is 1, so a gap closes at 3 times real time: the longest one that needs no operator in 10 days. A
# service that runs 6 hours a day keeps up; a clock that is ahead for a night costs no more than the grace.
CATCH_UP_RATE = 4
MAX_AHEAD_MS = 30 * DAY_MS
MAX_BEHIND_MS = 30 * DAY_MS
MIN_STEP_MS = MINUTE_MS  # the store is written this often at most
MAX_STORE_DIFFERENCE_MS = 30 * HOUR_MS  # above all errors of time zones and of clocks that drift

ACCEPT_COMMAND = "`aggregator doctor --accept-clock`"


class TrustedTime(msgspec.Struct, frozen=True, array_like=True):
    """The stored state, times in ms since 1970 UTC; see the head of this module."""

    trusted_ms: int
    seen_ms: int

    def advance(self, wall_ms: int, elapsed_ms: int) -> TrustedTime:
        """The state ``elapsed_ms`` later, under a plausible wall clock."""
        reachable_ms = self.trusted_ms + CATCH_UP_RATE * max(0, elapsed_ms)
        return TrustedTime(max(self.trusted_ms, min(wall_ms, reachable_ms)), max(self.seen_ms, wall_ms))


def find_clock_problem(
    state: TrustedTime, wall_ms: int, elapsed_ms: int, *, floor_ms: int, period_ms: int | None
) -> str | None:
    """Why the wall clock is implausible, ``elapsed_ms`` after ``state`` was read; None if it is plausible."""
    last_ms = max(state.trusted_ms, state.seen_ms) + elapsed_ms
    # At most half of the retention period.
    limit_ms = MAX_BEHIND_MS if period_ms is None else min(MAX_BEHIND_MS, period_ms // 2)
    if wall_ms > last_ms + MAX_AHEAD_MS:
        return (
            f"The clock of this machine says {format_rfc3339(wall_ms)}, {_days(wall_ms - last_ms)} after "
            f"this data was last in use; set the clock, or, if nothing ran for so long, confirm the clock "
            f"with {ACCEPT_COMMAND}."
        )
    if wall_ms < state.trusted_ms + elapsed_ms - limit_ms:
        return (
            f"The clock of this machine says {format_rfc3339(wall_ms)}, "
            f"{_days(state.trusted_ms + elapsed_ms - wall_ms)} before the last use of this data; set the "
            f"clock, or, if it is right and was wrong before, confirm it with {ACCEPT_COMMAND}."
        )
    if wall_ms < floor_ms:  # a floor before that may be of a shorter retention
        return (
            f"Articles that arrived before {format_rfc3339(floor_ms)} count as expired, although the clock "
            f"of this machine says {format_rfc3339(wall_ms)}: the service ran with a wrong clock; if the "
            f"clock is right now, confirm it with {ACCEPT_COMMAND}."
        )
    return None


def _days(duration_ms: int) -> str:
    return f"{duration_ms / DAY_MS:.1f} days"


TRUSTED_TIME_KEY = b"{clock}trusted"
OBSERVATION_MAX_AGE_MS = 5 * SECOND_MS  # an observation this old is repeated before a write
# One this old is repeated before a write is refused: the clock, or that of the store, may be right again.
REFUSAL_MAX_AGE_MS = SECOND_MS // 2
# Event detection ends events by the wall clock. After a leap it waits, in case the clock is corrected.
DOUBTFUL_FROM_MS = DAY_MS
SETTLING_MS = 10 * MINUTE_MS

_FORMAT = ValueFormat[TrustedTime | None](
    msgspec.msgpack.Decoder(TrustedTime), "The trusted time", lambda: None, PLAIN
)


def boot_clock_ms() -> int:
    """Milliseconds since the machine started, suspension included; unrelated to the time of day."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


class ClockGuard:
    """One process's view of the trusted time; the wall clock and the boot clock are in ms."""

    def __init__(
        self, index: Index, clock: Callable[[], int], boot_clock: Callable[[], int] | None = None
    ) -> None:
        self._index = index
        self._stored = StoredValue(index.store, TRUSTED_TIME_KEY, _FORMAT)
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
        """Judge the wall clock and advance the trusted time; returns ``problem``. Raises StoreUnavailable."""
        async with self._lock:
            await self._read()
            self.problem = self._judge()
            if self.problem is None:
                await self._advance()
            elif self._state is not None:
                # Time under an implausible clock gives no credit: it is made up like any other gap.
                self._anchor_ms = self._boot_clock()
            if self._state is None or abs(self.lag_ms) <= DOUBTFUL_FROM_MS:
                self._doubtful_since_ms = None
            elif self._doubtful_since_ms is None or self.problem is not None:
                self._doubtful_since_ms = self._boot_clock()
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
        """Declare the wall clock right; the trusted time and the floors fall to what it allows."""
        async with self._lock:
            now_ms = self._clock()
            await self._read()
            trusted_ms = min(now_ms, self._state.trusted_ms) if self._state is not None else now_ms
            state = _FORMAT.encode(TrustedTime(trusted_ms, now_ms))
            await self._index.store.put([Put(TRUSTED_TIME_KEY, state)])
            floor = self._index.retention.floor_at(now_ms)
            for space in self._index.all_spaces:
                await self._index.segments.lower_floor(space, floor)
        await self.observe()

    async def _recent_problem(self) -> str | None:
        """``problem`` by the clock of this moment; the store is read if that was long ago."""
        if self._observed_ms is None:
            return await self.observe()
        problem = self.problem or self._judge()
        max_age_ms = OBSERVATION_MAX_AGE_MS if problem is None else REFUSAL_MAX_AGE_MS
        if self._boot_clock() - self._observed_ms > max_age_ms:
            return await self.observe()
        return problem

    async def _read(self) -> None:
        raw = (await self._index.store.read([TRUSTED_TIME_KEY]))[0]
        stacks = await self._index.segments.refresh_all(self._index.all_spaces)
        self._floor_ms = max((arrival_ms_of(stack.floor) for stack in stacks), default=0)
        self._store_ms = await self._index.store.time_ms()
        now_ms = self._boot_clock()
        if raw is None:
            newest = await self._index.stream.recent_entries(1)
            newest_ms = arrival_ms_of(newest[0].number) if newest else 0
            self._state = TrustedTime(newest_ms, newest_ms) if newest else None
            self._raw, self._anchor_ms = None, now_ms
        elif raw != self._raw:
            self._state = _FORMAT.decode(raw)
            self._raw, self._anchor_ms = raw, now_ms
        self._observed_ms = now_ms

    def _judge(self) -> str | None:
        wall_ms, boot_ms = self._clock(), self._boot_clock()
        if self._store_ms is not None and self._observed_ms is not None:
            store_ms = self._store_ms + boot_ms - self._observed_ms
            if abs(wall_ms - store_ms) > MAX_STORE_DIFFERENCE_MS:
                return (
                    f"The clock of this machine says {format_rfc3339(wall_ms)}, that of the store "
                    f"{format_rfc3339(store_ms)}; set the one that is wrong."
                )
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
        elif stored := _FORMAT.decode(self._raw):
            gains = self._state.trusted_ms - stored.trusted_ms, self._state.seen_ms - stored.seen_ms
            if max(gains) < MIN_STEP_MS:
                return
        if await self._stored.replace(self._raw, self._state):
            self._raw = _FORMAT.encode(self._state)
