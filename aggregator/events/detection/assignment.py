"""Assignment of items to clusters: that of the duplicate, the nearest, or a new one.

The literal rule of Hu & You (MECS 2017) instead counts the items within 7 bits of one item, which is included
(``HammingMode``). Two fingerprints within 7 bits are equal in at least one of 8 blocks of 8 bits (pigeonhole
principle), so an item is compared only with those that share a block.
"""

from __future__ import annotations

from collections.abc import Iterator

from aggregator.domain import StreamItem
from aggregator.events.detection.clustering import RADIUS_BITS, Cluster, ClusterIndex, WindowItem
from aggregator.events.detection.expectation import TermWeights
from aggregator.events.detection.lifecycle import OpenEvents
from aggregator.events.detection.model import BurstRule

_BlockKey = tuple[str, int, int]


class HammingMode:
    """Fingerprints in the window; ``pending``: items of no event; ``seeds``: items that fired."""

    def __init__(self) -> None:
        self.pending: dict[int, WindowItem] = {}
        self.seeds: list[WindowItem] = []
        self._blocks: dict[_BlockKey, dict[int, WindowItem]] = {}

    def add(self, member: WindowItem) -> list[WindowItem]:
        """Add ``member`` to the pending items; returns those within 7 bits, ``member`` last."""
        candidates: dict[int, WindowItem] = {}
        for key in _block_keys(member):
            candidates.update(self._blocks.get(key, {}))
        found = [m for m in candidates.values() if m.cluster_key < 0 and _is_near(m, member)]
        self.insert(member)
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

    def insert(self, member: WindowItem) -> None:
        """Add a pending item."""
        self.pending[member.first_version] = member
        for key in _block_keys(member):
            self._blocks.setdefault(key, {})[member.first_version] = member


def _block_keys(member: WindowItem) -> Iterator[_BlockKey]:
    for block, bits in enumerate(member.fingerprint.to_bytes(8)):
        yield member.space, block, bits


def _is_near(a: WindowItem, b: WindowItem) -> bool:
    return (a.fingerprint ^ b.fingerprint).bit_count() <= RADIUS_BITS and a.space == b.space


class ClusterAssignment:
    """Finds the cluster of each item. ``hamming_mode``: None except under the literal rule."""

    def __init__(
        self,
        rule: BurstRule,
        clusters: ClusterIndex,
        open_events: OpenEvents,
        term_weights: TermWeights,
        hamming_mode: HammingMode | None,
    ) -> None:
        self._rule, self._clusters, self._open_events = rule, clusters, open_events
        self._term_weights, self._hamming_mode = term_weights, hamming_mode

    def cluster_of_duplicate(self, item: StreamItem) -> Cluster | None:
        """Cluster of the article that this one duplicates, if it is in the window."""
        # The literal rule counts duplicates like any item.
        if item.verdict != "duplicate" or self._hamming_mode is not None:
            return None
        return self._cluster_containing(item.canonical_first) or self._cluster_containing(item.matched_number)

    def assign(self, member: WindowItem, duplicate_cluster: Cluster | None) -> Cluster:
        """Add an item of the window to its cluster, which may be new, and return it."""
        cluster, member.cosine = self._nearest_cluster(member, duplicate_cluster)
        if cluster is None:
            cluster, member.cosine = self._clusters.create(member), 1.0
        self.add(cluster, member)
        return cluster

    def find_event_cluster(self, member: WindowItem, duplicate_cluster: Cluster | None) -> Cluster | None:
        """Return the cluster of an uncounted item if it is an event, and set the item's cosine to it."""
        cluster, member.cosine = self._nearest_cluster(member, duplicate_cluster)
        return cluster if cluster is not None and cluster.event_id is not None else None

    def assign_by_hamming_distance(self, member: WindowItem, clock_ms: int) -> None:
        """Apply the literal rule: count the neighbors of the item instead of a cluster."""
        assert self._hamming_mode is not None
        seed = next((s for s in self._hamming_mode.seeds if _is_near(s, member)), None)
        neighbors = self._hamming_mode.add(member)
        if seed is not None:
            self.add(self._clusters.by_key[seed.cluster_key], member)
        elif member.is_counted and sum(m.is_counted for m in neighbors) > self._rule.items:
            cluster = self._clusters.create(member)
            for neighbor in neighbors:
                self.add(cluster, neighbor)
            self._hamming_mode.seeds.append(member)
            self._open_events.fire(cluster, clock_ms, 0.0, self._rule.items)

    def _nearest_cluster(
        self, member: WindowItem, duplicate_cluster: Cluster | None
    ) -> tuple[Cluster | None, float]:
        if duplicate_cluster is not None:
            return duplicate_cluster, 1.0
        cluster, cosine = self._clusters.nearest(member.terms, self._term_weights.weigh)
        event = self._open_events.event_of_cluster(cluster) if cluster is not None else None
        # What is left of an event takes in nothing that it was not about.
        if event is None or event.status != "fading" or self._open_events.is_about(event, member):
            return cluster, cosine
        return None, 0.0

    def _cluster_containing(self, number: int | None) -> Cluster | None:
        key = self._clusters.key_by_number.get(number) if number is not None else None
        return self._clusters.by_key[key] if key is not None else None

    def add(self, cluster: Cluster, member: WindowItem) -> None:
        """Add an item to a cluster, and to its event if it is one."""
        self._clusters.add_item(cluster, member)
        if cluster.event_id is not None:
            self._open_events.add_items(cluster, [member])
