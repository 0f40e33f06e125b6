"""Memory budget for request bodies that are still arriving.

A body holds no slot of the load shedder while it arrives, so many concurrent large bodies could exhaust the
memory. The bytes of each body beyond its first EXEMPT_BYTES are charged to this budget, of which one caller
gets half; a body that does not fit is rejected and can be sent again later. Nearly all articles are small
enough to be exempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aggregator.errors import Overloaded
from aggregator.http.limits.caller_usage import CallerUsage

EXEMPT_BYTES = 64 * 1024
BUDGET_BYTES = 128 * 1024 * 1024


class BodyMemoryBudget:
    """``size_bytes`` for all bodies of this process."""

    def __init__(self, size_bytes: int = BUDGET_BYTES) -> None:
        self._size_bytes = size_bytes
        self._usage = CallerUsage()

    @property
    def used_bytes(self) -> int:
        """Bytes charged at the moment."""
        return self._usage.total

    @contextmanager
    def reserve(self, caller: str) -> Iterator[Callable[[int], None]]:
        """Yield ``resize(size_bytes)``, to be called with the body's size whenever it has grown.

        ``resize`` raises Overloaded when the budget does not allow the size.
        """
        held = 0

        def resize(size_bytes: int) -> None:
            nonlocal held
            growth = max(0, size_bytes - EXEMPT_BYTES) - held
            if growth <= 0:
                return
            if growth > min(
                self._size_bytes - self._usage.total, self._size_bytes // 2 - self._usage.of(caller)
            ):
                raise Overloaded("body: too many large bodies are arriving here already; retry in a second.")
            held += growth
            self._usage.add(caller, growth)

        try:
            yield resize
        finally:
            self._usage.remove(caller, held)
