"""Load shedding: an adaptive limit on single-article requests in flight; others get 503 and Retry-After.

An overloaded service that admits everything answers everything too late, and works for callers that have
given up. Here at most ``max_slots`` articles are in flight, and fewer when answers are slow: the number that
completes within TARGET_LATENCY_S at the recent pace (an average over about the last 50 answers). Each caller
may always have GUARANTEED_PER_CALLER in flight, so that one caller's slow pages do not lock out the others.

A request holds no slot while its body arrives, so slow senders block no other caller. Articles of batches
hold none: a batch is read no faster than it is processed, and ``per_caller.py`` limits the open batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aggregator.errors import Overloaded
from aggregator.http.limits.caller_usage import CallerUsage

TARGET_LATENCY_S = 1.0
# A few large pages of one caller take long without any overload.
GUARANTEED_PER_CALLER = 8
_DECAY = 0.98  # weight of the previous measurements, per answer


class LoadShedder:
    """Slots for single-article requests of this process. ``clock``: monotonic, in seconds."""

    def __init__(self, max_slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_slots = max_slots
        self._clock = clock
        self._last_completion_s = 0.0  # the last answer, or the start of the current busy period
        self._busy_s = self._completed = 0.0
        self._usage = CallerUsage()

    @property
    def in_flight(self) -> int:
        """Articles in flight."""
        return self._usage.total

    @property
    def limit(self) -> int:
        """Current limit on articles in flight, for callers that have their guaranteed ones already."""
        # A quarter is left to callers with few articles in flight.
        most = max(GUARANTEED_PER_CALLER, self._max_slots * 3 // 4)
        if self._completed < 1 or not self._busy_s:
            return most
        return min(
            most,
            max(GUARANTEED_PER_CALLER, int(TARGET_LATENCY_S * self._completed / self._busy_s)),
        )

    @property
    def may_be_full(self) -> bool:
        """Whether there can be a caller without a free slot."""
        return self.in_flight >= min(GUARANTEED_PER_CALLER, self._max_slots)

    def is_full_for(self, caller: str) -> bool:
        """Whether an article of this caller would be refused now."""
        guaranteed = self._usage.of(caller) < GUARANTEED_PER_CALLER
        return self.in_flight >= (self._max_slots if guaranteed else self.limit)

    def check(self, caller: str) -> None:
        """Raise Overloaded when no slot is free for this caller."""
        if self.is_full_for(caller):
            raise Overloaded(
                f"{self.in_flight} articles are in flight here already (setting max_inflight_articles; fewer "
                "while answers are slow); retry in a second, or send many articles in one batch."
            )

    @contextmanager
    def slot(self, caller: str = "") -> Iterator[None]:
        """Held while an article of this caller is processed. Raises Overloaded when no slot is free."""
        self.check(caller)
        if not self.in_flight:
            self._last_completion_s = self._clock()
        self._usage.add(caller)
        try:
            yield
        finally:
            self._usage.remove(caller)
            now_s = self._clock()
            self._busy_s = self._busy_s * _DECAY + now_s - self._last_completion_s
            self._completed = self._completed * _DECAY + 1
            self._last_completion_s = now_s
