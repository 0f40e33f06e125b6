"""Literal burst rule of Hu & You (MECS 2017): more than 15 near items in 4 hours (``event_rule=literal``).

Near means a Hamming distance of at most 7 bits from one item, which is included in the count. Two
fingerprints within 7 bits are equal in at least one of 8 blocks of 8 bits (pigeonhole principle), so an item
is compared only with those that share a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aggregator.events.detection.clustering import WindowItem

RADIUS_BITS = 7
_BLOCK_BITS = 8
_BLOCK_MASK = (1 << _BLOCK_BITS) - 1
_BLOCK_SHIFTS = range(0, 64, _BLOCK_BITS)

_BlockKey = tuple[str, int, int]


class HammingMode:
    """Fingerprints in the window. Those of different spaces are never near.

    ``pending``: items of no event, by first version; ``seeds``: items that fired, until their event closes.
    """

    def __init__(self) -> None:
        self.pending: dict[int, WindowItem] = {}
        self.seeds: list[WindowItem] = []
        self._blocks: dict[_BlockKey, dict[int, WindowItem]] = {}

    def restore(self, pending: Iterable[WindowItem], seeds: list[WindowItem]) -> None:
        """Fill an empty instance with saved items."""
        for member in pending:
            self._insert(member)
        self.seeds = seeds

    def find_seed(self, member: WindowItem) -> WindowItem | None:
        """Return the first item within 7 bits that fired."""
        return next((s for s in self.seeds if _is_near(s, member)), None)

    def add(self, member: WindowItem) -> list[WindowItem]:
        """Add ``member`` to the pending items; returns those within 7 bits, ``member`` last."""
        candidates: dict[int, WindowItem] = {}
        for key in _block_keys(member):
            candidates.update(self._blocks.get(key, {}))
        found = [m for m in candidates.values() if m.cluster_key < 0 and _is_near(m, member)]
        self._insert(member)
        return [*sorted(found, key=lambda m: m.first_version), member]

    def remove(self, member: WindowItem) -> None:
        """Remove an expired item. A seed is kept while its cluster has items."""
        if self.pending.pop(member.first_version, None) is None:
            return
        for key in _block_keys(member):
            block = self._blocks[key]
            del block[member.first_version]
            if not block:
                del self._blocks[key]

    def close_cluster(self, cluster_key: int) -> None:
        """Drop the seeds of a cluster whose event closed."""
        self.seeds = [s for s in self.seeds if s.cluster_key != cluster_key]

    def _insert(self, member: WindowItem) -> None:
        self.pending[member.first_version] = member
        for key in _block_keys(member):
            self._blocks.setdefault(key, {})[member.first_version] = member


def _block_keys(member: WindowItem) -> Iterator[_BlockKey]:
    for shift in _BLOCK_SHIFTS:
        yield member.space, shift, member.fingerprint >> shift & _BLOCK_MASK


def _is_near(a: WindowItem, b: WindowItem) -> bool:
    return (a.fingerprint ^ b.fingerprint).bit_count() <= RADIUS_BITS and a.space == b.space
