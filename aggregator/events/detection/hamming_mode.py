"""Literal burst rule of Hu & You (MECS 2017), for comparison: more than 15 near items in 4 hours.

Near means a Hamming distance of at most 7 bits from one item, which is included in the count. Items near the
item that fired belong to its event. The rule uses neither centroids nor an expectation.
"""

from __future__ import annotations

from aggregator.events.detection.clustering import WindowItem

RADIUS_BITS = 7


class HammingMode:
    """Fingerprints in the window, compared by brute force: a window has a few thousand items.

    ``pending``: items of no event, by first version; ``seeds``: items that fired, until their event closes.
    """

    def __init__(self) -> None:
        self.pending: dict[int, WindowItem] = {}
        self.seeds: list[WindowItem] = []

    def find_seed(self, member: WindowItem) -> WindowItem | None:
        """Return the first item within 7 bits that fired."""
        return next((s for s in self.seeds if _is_within_radius(s, member)), None)

    def add(self, member: WindowItem) -> list[WindowItem]:
        """Add ``member`` to the pending items; returns those within 7 bits, ``member`` last."""
        found = [m for m in self.pending.values() if m.story_key < 0 and _is_within_radius(m, member)]
        self.pending[member.first_version] = member
        return [*found, member]

    def remove(self, member: WindowItem) -> None:
        """Remove an expired item. A seed is kept while its story has items."""
        self.pending.pop(member.first_version, None)

    def close_story(self, story_key: int) -> None:
        """Drop the seeds of a story whose event closed."""
        self.seeds = [s for s in self.seeds if s.story_key != story_key]


def _is_within_radius(a: WindowItem, b: WindowItem) -> bool:
    return (a.fingerprint ^ b.fingerprint).bit_count() <= RADIUS_BITS
