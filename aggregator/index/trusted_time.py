"""Trusted time: the time that retention goes by, and the rules that judge a wall clock. Pure.

A wall clock may be wrong by any amount, in both directions, and may have been wrong yesterday. What it would
destroy cannot be brought back, so nothing that destroys goes by it. The store holds two times:

* ``trusted_ms``: retention, stream trimming and the sweep go by this. It never passes a plausible wall clock
  and gains at most ``CATCH_UP_RATE`` ms per ms that a process was running or suspended. So a clock that is
  wrong for 20 s costs at most 80 s of retention, and one that is ahead for 8 hours no more than the day that
  articles are kept beyond their period; after 30 days without power articles expire up to 10 days late.
  While it is ahead of the clock it waits.
* ``seen_ms``: the latest wall clock that was plausible.

A wall clock is implausible if it is over ``MAX_AHEAD_MS`` ahead of both (a machine may be off for so long
without an operator), or so far behind that articles which arrive now would be kept for less than half of
their period. Elapsed time is measured by the boot-time clock, which nobody sets and which counts suspension.
"""

from __future__ import annotations

import msgspec

from aggregator.time_units import DAY_MS, HOUR_MS, MINUTE_MS, format_rfc3339

# Real time is 1, so a gap closes at 3 times real time: the longest one that needs no operator in 10 days. A
# service that runs 6 hours a day keeps up; a clock that is ahead for a night costs no more than the grace.
CATCH_UP_RATE = 4
MAX_AHEAD_MS = 30 * DAY_MS
MAX_BEHIND_MS = 30 * DAY_MS
# The store is written this often at most.
MIN_STEP_MS = MINUTE_MS
# Above all errors of time zones and of clocks that drift.
MAX_STORE_DIFFERENCE_MS = 30 * HOUR_MS

ACCEPT_COMMAND = "`aggregator clock --accept`"


class TrustedTime(msgspec.Struct, frozen=True, array_like=True):
    """The stored state, times in ms since 1970 UTC; see the head of this module."""

    trusted_ms: int
    seen_ms: int

    def advance(self, wall_ms: int, elapsed_ms: int) -> TrustedTime:
        """The state ``elapsed_ms`` later, under a plausible wall clock."""
        reachable_ms = self.trusted_ms + CATCH_UP_RATE * max(0, elapsed_ms)
        return TrustedTime(
            max(self.trusted_ms, min(wall_ms, reachable_ms)),
            max(self.seen_ms, wall_ms),
        )

    def is_step(self, later: TrustedTime) -> bool:
        """Whether ``later`` is worth a write."""
        gains = later.trusted_ms - self.trusted_ms, later.seen_ms - self.seen_ms
        return max(gains) >= MIN_STEP_MS


def max_behind_ms(period_ms: int | None) -> int:
    """How far the wall clock may be behind: half of the retention period, at most ``MAX_BEHIND_MS``."""
    return MAX_BEHIND_MS if period_ms is None else min(MAX_BEHIND_MS, period_ms // 2)


def find_clock_problem(
    state: TrustedTime, wall_ms: int, elapsed_ms: int, *, floor_ms: int, period_ms: int | None
) -> str | None:
    """Why the wall clock is implausible, as one sentence; None if it is plausible.

    ``elapsed_ms``: since ``state`` was read; ``floor_ms``: arrival time at the highest saved floor.
    """
    last_ms = max(state.trusted_ms, state.seen_ms) + elapsed_ms
    limit_ms = max_behind_ms(period_ms)
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
    if period_ms is not None and floor_ms and wall_ms < floor_ms + limit_ms:
        return (
            f"Articles that arrived before {format_rfc3339(floor_ms)} count as expired, although the clock "
            f"of this machine says {format_rfc3339(wall_ms)} and articles are kept for {_days(period_ms)}: "
            f"the service ran with a wrong clock; if the clock is right now, confirm it with "
            f"{ACCEPT_COMMAND}."
        )
    return None


def find_store_difference(wall_ms: int, store_ms: int) -> str | None:
    """Why the clocks of this machine and of the store contradict each other; None if they agree."""
    if abs(wall_ms - store_ms) <= MAX_STORE_DIFFERENCE_MS:
        return None
    return (
        f"The clock of this machine says {format_rfc3339(wall_ms)}, that of the store "
        f"{format_rfc3339(store_ms)}; set the one that is wrong."
    )


def _days(duration_ms: int) -> str:
    return f"{duration_ms / DAY_MS:.1f} days"
