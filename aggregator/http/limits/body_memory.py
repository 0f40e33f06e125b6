"""How much of large bodies may a process hold while they arrive?

A body that arrives holds no place (``admission.py``), so that slow senders keep nobody out. But many large ones at once,
from callers that hurry or dawdle, would take all memory. So what they have beyond their first ``SMALL_BYTES`` shares
a room, of which one caller gets half; who finds none left comes again later. Nearly all articles are small, and are read
whatever is in the room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aggregator.http.limits.load_shedding import Overloaded

EXEMPT_BYTES = 64 * 1024
BUDGET_BYTES = 128 * 1024 * 1024


class BodyMemoryBudget:
    """``size_bytes`` of room in this process."""

    def __init__(self, size_bytes: int = BUDGET_BYTES) -> None:
        self._size_bytes = size_bytes
        self._bytes_per_caller: Counter[str] = Counter()  # bytes of each caller

    @property
    def used_bytes(self) -> int:
        """What all of them hold."""
        return self._bytes_per_caller.total()

    @contextmanager
    def reserve(self, caller: str) -> Iterator[Callable[[int], None]]:
        """Gives what is to be told the body's size whenever it grew; that raises Overloaded when there is no room."""
        held = 0

        def grew(size_bytes: int) -> None:
            nonlocal held
            more = max(0, size_bytes - EXEMPT_BYTES) - held
            free = min(
                self._size_bytes - self.used_bytes, self._size_bytes // 2 - self._bytes_per_caller[caller]
            )
            if more > 0 and more > free:
                raise Overloaded(
                    "body: too many large bodies are arriving here already; send this one again in a second."
                )
            if more > 0:
                held += more
                self._bytes_per_caller[caller] += more

        try:
            yield grew
        finally:
            self._bytes_per_caller[caller] -= held
            if not self._bytes_per_caller[caller]:
                del self._bytes_per_caller[caller]
