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

from aggregator.errors import OverLimit

WAIT_S = 1.0
# So many of a caller are always taken in while there are places: a few large pages take long without any overload.
FEW = 8
_KEPT = 0.98  # of what is known of the pace, at each answer


class Overloaded(OverLimit):
    """More articles are on their way than this process answers in time."""


class Admission:
    """Places for articles under way in this process. ``clock``: monotonic, in seconds."""

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._places = places
        self._clock = clock
        self._since_s = 0.0  # the last answer, or when this process had nothing to do
        self._busy_s = self._answers = 0.0
        self.taken = 0
        self._of: Counter[str] = Counter()  # of each caller

    @property
    def limit(self) -> int:
        """How many may be on their way now."""
        if self._answers < 1 or not self._busy_s:
            return self._places
        return min(self._places, max(FEW, int(WAIT_S * self._answers / self._busy_s)))

    @contextmanager
    def place(self, caller: str = "") -> Iterator[None]:
        """Held while an article of this caller is decided. Raises Overloaded when all are taken."""
        if self.taken >= (self.limit if self._of[caller] >= FEW else self._places):
            raise Overloaded(
                f"{self.taken} articles are on their way here already (setting max_waiting, fewer when answers take "
                "long); send this one again in a second, or many in one batch."
            )
        if not self.taken:
            self._since_s = self._clock()
        self.taken += 1
        self._of[caller] += 1
        try:
            yield
        finally:
            self.taken -= 1
            self._of[caller] -= 1
            if not self._of[caller]:
                del self._of[caller]
            now_s = self._clock()
            self._busy_s = self._busy_s * _KEPT + now_s - self._since_s
            self._answers = self._answers * _KEPT + 1
            self._since_s = now_s
