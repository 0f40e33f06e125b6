"""How many articles may be on their way at once? Beyond that, a request is refused before anything is done for it.

A service that takes in more than it can do answers everything too late: each waits for all before it, and
callers give up on what is then done for nobody. Who is refused at once can come again; who is taken in is
answered in a time that the limit bounds. It is a number of places, and fewer where answers are slow: no more
are taken in than are answered within ``WAIT_S`` at the pace of the last hundred or so; only a few of each caller always
are, so that nobody's slow pages keep others out. A body that is still arriving
holds no place, so slow senders keep nobody out. The articles of batches need no place: they are read no faster than
they are answered (how many batches may be open: ``shares.py``).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aggregator.errors import RateLimited

TARGET_LATENCY_S = 1.0
# So many of a caller are always taken in while there are places: a few large pages take long without any overload.
GUARANTEED_PER_CALLER = 8
_DECAY = 0.98  # of what is known of the pace, at each answer


class Overloaded(RateLimited):
    """More articles are on their way than this process answers in time."""


class LoadShedder:
    """Places for articles under way in this process. ``clock``: monotonic, in seconds."""

    def __init__(self, max_slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_slots = max_slots
        self._clock = clock
        self._last_completion_s = 0.0  # the last answer, or when this process had nothing to do
        self._busy_s = self._completed = 0.0
        self.in_flight = 0
        self._in_flight_per_caller: Counter[str] = Counter()  # of each caller

    @property
    def limit(self) -> int:
        """How many may be on their way now."""
        if self._completed < 1 or not self._busy_s:
            return self._max_slots
        return min(
            self._max_slots,
            max(GUARANTEED_PER_CALLER, int(TARGET_LATENCY_S * self._completed / self._busy_s)),
        )

    @contextmanager
    def slot(self, caller: str = "") -> Iterator[None]:
        """Held while an article of this caller is decided. Raises Overloaded when all are taken."""
        if self.in_flight >= (
            self.limit if self._in_flight_per_caller[caller] >= GUARANTEED_PER_CALLER else self._max_slots
        ):
            raise Overloaded(
                f"{self.in_flight} articles are on their way here already (setting max_inflight_articles, fewer when answers take "
                "long); send this one again in a second, or many in one batch."
            )
        if not self.in_flight:
            self._last_completion_s = self._clock()
        self.in_flight += 1
        self._in_flight_per_caller[caller] += 1
        try:
            yield
        finally:
            self.in_flight -= 1
            self._in_flight_per_caller[caller] -= 1
            if not self._in_flight_per_caller[caller]:
                del self._in_flight_per_caller[caller]
            now_s = self._clock()
            self._busy_s = self._busy_s * _DECAY + now_s - self._last_completion_s
            self._completed = self._completed * _DECAY + 1
            self._last_completion_s = now_s
