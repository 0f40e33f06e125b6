"""The literal rule of Hu & You (MECS 2017): an item with more than 15 near items in 4 hours, for comparison.

Near is a Hamming distance of at most 7 bits, the item itself included in the count. Items near the item that
fired belong to its event; there are no centroids and there is no expectation.
"""

from __future__ import annotations

from aggregator.events.detection.clustering import WindowItem

RADIUS_BITS = 7


class HammingMode:
    """Fingerprints in the window, by brute force: a window is some thousand items."""

    def __init__(self) -> None:
        self.pending: dict[int, WindowItem] = {}
        self.seeds: list[WindowItem] = []

    def find_seed(self, member: WindowItem) -> WindowItem | None:
        """The first item that fired within 7 bits of this one."""
        return next((s for s in self.seeds if _is_within_radius(s, member)), None)

    def add(self, member: WindowItem) -> list[WindowItem]:
        """Items of no event yet within 7 bits, ``member`` last; it waits with them."""
        found = [m for m in self.pending.values() if m.story_key < 0 and _is_within_radius(m, member)]
        self.pending[member.first_version] = member
        return [*found, member]

    def remove(self, member: WindowItem) -> None:
        """It left the window. A seed stays as long as its story has items."""
        self.pending.pop(member.first_version, None)

    def close_story(self, story_key: int) -> None:
        """Its event is closed."""
        self.seeds = [s for s in self.seeds if s.story_key != story_key]


def _is_within_radius(a: WindowItem, b: WindowItem) -> bool:
    return (a.fingerprint ^ b.fingerprint).bit_count() <= RADIUS_BITS
