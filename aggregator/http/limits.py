"""Admission control of one process: slots of single articles, long requests, memory of bodies.

An overloaded service that admits everything answers everything too late, and works for callers that have
given up. ``caller`` is the id of a key, or the address of a client without one: no limit is exhausted by one
caller alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aggregator.errors import AggregatorError, Overloaded, TooManyStreams
from aggregator.events.broadcast import MAX_SUBSCRIBERS

TARGET_LATENCY_S = 1.0
GUARANTEED_PER_CALLER = 8  # a few large pages of one caller take long without any overload
_DECAY = 0.98  # weight of the previous measurements, per answer
MAX_OPEN_BATCHES = 64
EXEMPT_BYTES = 64 * 1024  # nearly all articles are small enough to be exempt
BUDGET_BYTES = 128 * 1024 * 1024


class CallerUsage:
    """Units in use (slots or bytes) per caller and in total."""

    def __init__(self) -> None:
        self.total = 0
        self._by_caller: Counter[str] = Counter()

    def of(self, caller: str) -> int:
        """Units in use by ``caller``."""
        return self._by_caller[caller]

    def add(self, caller: str, amount: int) -> None:
        """Take ``amount`` units for ``caller``, or return -``amount``."""
        self.total += amount
        self._by_caller[caller] += amount
        if not self._by_caller[caller]:
            del self._by_caller[caller]


class LoadShedder:
    """Slots for single-article requests; others get 503 and Retry-After. ``clock``: monotonic, in seconds.

    At most ``max_slots`` articles are in flight, and fewer when answers are slow: the number that completes
    within TARGET_LATENCY_S at the recent pace (an average over about the last 50 answers). Each caller may
    always have GUARANTEED_PER_CALLER in flight, so that one caller's slow pages do not lock out the others.

    A request holds no slot while its body arrives, so slow senders block no other caller. Articles of batches
    hold none: a batch is read no faster than it is processed, and the number of open batches is limited.
    """

    def __init__(self, max_slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_slots = max_slots
        self._clock = clock
        self._last_completion_s = 0.0  # the last answer, or the start of the current busy period
        self._busy_s = self._completed = 0.0
        self.usage = CallerUsage()

    @property
    def limit(self) -> int:
        """Current limit on articles in flight, for callers that have their guaranteed ones already."""
        # A quarter is left to callers with few articles in flight.
        most = max(GUARANTEED_PER_CALLER, self._max_slots * 3 // 4)
        if self._completed < 1 or not self._busy_s:
            return most
        return min(most, max(GUARANTEED_PER_CALLER, int(TARGET_LATENCY_S * self._completed / self._busy_s)))

    @property
    def may_be_full(self) -> bool:
        """Whether there can be a caller without a free slot."""
        return self.usage.total >= min(GUARANTEED_PER_CALLER, self._max_slots)

    def is_full_for(self, caller: str) -> bool:
        """Whether an article of this caller would be refused now."""
        guaranteed = self.usage.of(caller) < GUARANTEED_PER_CALLER
        return self.usage.total >= (self._max_slots if guaranteed else self.limit)

    def check(self, caller: str) -> None:
        """Raise Overloaded when no slot is free for this caller."""
        if self.may_be_full and self.is_full_for(caller):
            raise Overloaded(
                f"{self.usage.total} articles are in flight here already (setting max_inflight_articles; "
                "fewer while answers are slow); retry in a second, or send many articles in one batch."
            )

    @contextmanager
    def slot(self, caller: str = "") -> Iterator[None]:
        """Held while an article of this caller is processed. Raises Overloaded when no slot is free."""
        self.check(caller)
        if not self.usage.total:
            self._last_completion_s = self._clock()
        self.usage.add(caller, 1)
        try:
            yield
        finally:
            self.usage.add(caller, -1)
            now_s = self._clock()
            self._busy_s = self._busy_s * _DECAY + now_s - self._last_completion_s
            self._completed = self._completed * _DECAY + 1
            self._last_completion_s = now_s


class PerCallerLimit:
    """``slots`` for long requests, half of them per caller.

    A request beyond them gets ``error``: ``own_message`` of a caller with ``{own}`` slots, its half, else
    ``message``. A slot is taken before the first await, so simultaneous requests cannot all pass.
    """

    def __init__(self, slots: int, error: type[AggregatorError], own_message: str, message: str) -> None:
        self._slots, self._error = slots, error
        self._own_message, self._message = own_message, message
        self.usage = CallerUsage()

    @contextmanager
    def slot(self, caller: str) -> Iterator[None]:
        """Held while such a request of this caller is open. Raises the error."""
        if self.usage.total >= self._slots:
            raise self._error(self._message)
        if self.usage.of(caller) >= self._slots // 2:
            raise self._error(self._own_message.format(own=self.usage.of(caller)))
        self.usage.add(caller, 1)
        try:
            yield
        finally:
            self.usage.add(caller, -1)


def stream_limit() -> PerCallerLimit:
    """Limit on event streams, which stay open for hours."""
    return PerCallerLimit(
        MAX_SUBSCRIBERS,
        TooManyStreams,
        "This caller has {own} streams open here already; close one, or share one among its readers.",
        "No more streams can be opened at the moment; retry in a few seconds.",
    )


def batch_limit() -> PerCallerLimit:
    """Limit on batches, each of which holds what it has prefetched."""
    rest = "are open here already; retry in a second, or send more lines in each batch."
    return PerCallerLimit(
        MAX_OPEN_BATCHES,
        Overloaded,
        f"{{own}} batches of this caller {rest}",
        f"{MAX_OPEN_BATCHES} batches {rest}",
    )


class BodyMemoryBudget:
    """``size_bytes`` for all bodies of this process that are still arriving, half of it per caller.

    A body holds no slot of the load shedder while it arrives, so many large bodies at once could exhaust the
    memory. Bytes of each beyond its first EXEMPT_BYTES count; one that does not fit can be sent again later.
    """

    def __init__(self, size_bytes: int = BUDGET_BYTES) -> None:
        self._size_bytes = size_bytes
        self.usage = CallerUsage()

    @contextmanager
    def reserve(self, caller: str) -> Iterator[Callable[[int], None]]:
        """Yield ``resize(size_bytes)``, to be called whenever the body has grown. It raises Overloaded."""
        held = 0

        def resize(size_bytes: int) -> None:
            nonlocal held
            growth = max(0, size_bytes - EXEMPT_BYTES) - held
            if growth <= 0:
                return
            total_left = self._size_bytes - self.usage.total
            if growth > min(total_left, self._size_bytes // 2 - self.usage.of(caller)):
                raise Overloaded("body: too many large bodies are arriving here already; retry in a second.")
            held += growth
            self.usage.add(caller, growth)

        try:
            yield resize
        finally:
            if held:
                self.usage.add(caller, -held)
