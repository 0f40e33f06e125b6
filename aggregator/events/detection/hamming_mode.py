"""The literal rule of Hu & You (MECS 2017): an item with more than 15 near items in 4 hours, for comparison.

Near is a Hamming distance of at most 7 bits, the item itself included in the count. Items near the item that
fired belong to its event; there are no centroids and there is no expectation.
"""

from __future__ import annotations

from aggregator.events.detection.clustering import Member
from aggregator.events.detection.model import BurstRule

RADIUS_BITS = 7


class Neighbours:
    """Fingerprints in the window, by brute force: a window is some thousand items."""

    def __init__(self, rule: BurstRule) -> None:
        self.rule = rule
        self.waiting: dict[int, Member] = {}
        self.seeds: list[Member] = []

    def seed_of(self, member: Member) -> Member | None:
        """The first item that fired within 7 bits of this one."""
        return next((s for s in self.seeds if _near(s, member)), None)

    def add(self, member: Member) -> list[Member]:
        """Items of no event yet within 7 bits, ``member`` last; it waits with them."""
        found = [m for m in self.waiting.values() if m.story < 0 and _near(m, member)]
        self.waiting[member.first] = member
        return [*found, member]

    def leave(self, member: Member) -> None:
        """It left the window. A seed stays as long as its story has items."""
        self.waiting.pop(member.first, None)

    def close(self, story: int) -> None:
        """Its event is closed."""
        self.seeds = [s for s in self.seeds if s.story != story]


def _near(a: Member, b: Member) -> bool:
    return (a.fingerprint ^ b.fingerprint).bit_count() <= RADIUS_BITS
