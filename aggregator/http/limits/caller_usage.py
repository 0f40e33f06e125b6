"""Units in use (slots or bytes) per caller and in total."""

from __future__ import annotations

from collections import Counter


class CallerUsage:
    """Counters of units in use. ``caller``: key id, or address without a key."""

    def __init__(self) -> None:
        self.total = 0
        self._by_caller: Counter[str] = Counter()

    def of(self, caller: str) -> int:
        """Units in use by this caller."""
        return self._by_caller[caller]

    def add(self, caller: str, amount: int = 1) -> None:
        """Add ``amount`` units to the usage of this caller."""
        self.total += amount
        self._by_caller[caller] += amount

    def remove(self, caller: str, amount: int = 1) -> None:
        """Remove ``amount`` units from the usage of this caller."""
        self.total -= amount
        self._by_caller[caller] -= amount
        if not self._by_caller[caller]:
            del self._by_caller[caller]
