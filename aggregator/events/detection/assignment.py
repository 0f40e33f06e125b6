"""Assignment of items to clusters: that of the duplicate, the nearest, the related one, or a new one.

Under the literal rule an item is compared with its neighbors instead (``hamming_mode.py``).
"""

from __future__ import annotations

import xxhash

from aggregator.domain import StreamItem
from aggregator.events.detection.clustering import (
    JOIN_RELATED_COSINE,
    MIN_ITEMS_TO_MERGE,
    Cluster,
    ClusterIndex,
    WindowItem,
)
from aggregator.events.detection.state import DetectorParts


class ClusterAssignment:
    """Finds the cluster of each item of a detector."""

    def __init__(self, parts: DetectorParts) -> None:
        self._rule, self._clusters, self._open_events = parts.rule, parts.clusters, parts.open_events
        self._term_weights, self._hamming_mode = parts.term_weights, parts.hamming_mode

    def cluster_of_duplicate(self, item: StreamItem) -> Cluster | None:
        """Cluster of the article that this one duplicates, if it is in the window."""
        # The literal rule counts duplicates like any item.
        if item.verdict != "duplicate" or self._hamming_mode is not None:
            return None
        return self._cluster_containing(item.canonical_first) or self._cluster_containing(item.matched_number)

    def assign(self, member: WindowItem, item: StreamItem, duplicate_cluster: Cluster | None) -> Cluster:
        """Add an item of the window to its cluster, which may be new, and return it."""
        cluster, member.cosine = self._nearest_cluster(member, duplicate_cluster)
        if cluster is None:
            cluster, member.cosine = self._cluster_of_related(item, member)
        if cluster is None:
            cluster, member.cosine = create_cluster(self._clusters, member), 1.0
        self.add(cluster, member)
        return cluster

    def find_event_cluster(self, member: WindowItem, duplicate_cluster: Cluster | None) -> Cluster | None:
        """Return the cluster of an uncounted item if it is an event, and set the item's cosine to it."""
        cluster, member.cosine = self._nearest_cluster(member, duplicate_cluster)
        return cluster if cluster is not None and cluster.event_id is not None else None

    def assign_by_hamming_distance(self, member: WindowItem, clock_ms: int) -> None:
        """Apply the literal rule: count the neighbors of the item instead of a cluster."""
        assert self._hamming_mode is not None
        seed = self._hamming_mode.find_seed(member)
        neighbors = self._hamming_mode.add(member)
        if seed is not None:
            self.add(self._clusters.by_key[seed.cluster_key], member)
        elif member.is_counted and sum(m.is_counted for m in neighbors) > self._rule.items:
            cluster = create_cluster(self._clusters, member)
            for neighbor in neighbors:
                self.add(cluster, neighbor)
            self._hamming_mode.seeds.append(member)
            self._open_events.fire(cluster, clock_ms, 0.0)

    def _nearest_cluster(
        self, member: WindowItem, duplicate_cluster: Cluster | None
    ) -> tuple[Cluster | None, float]:
        if duplicate_cluster is not None:
            return duplicate_cluster, 1.0
        cluster, cosine = self._clusters.nearest(member.terms, self._term_weights.weigh)
        return (
            (cluster, cosine)
            if cluster and not self._is_rest_of_other_event(cluster, member)
            else (None, 0.0)
        )

    def _is_rest_of_other_event(self, cluster: Cluster, member: WindowItem) -> bool:
        """Whether the cluster is the last items of an event that was about something else than the item."""
        event = self._open_events.event_of_cluster(cluster)
        return (
            event is not None
            and len(cluster.members) < MIN_ITEMS_TO_MERGE
            and self._open_events.similarity(event, member) < JOIN_RELATED_COSINE
        )

    def _cluster_of_related(self, item: StreamItem, member: WindowItem) -> tuple[Cluster | None, float]:
        cluster = self._cluster_containing(item.matched_number) if item.verdict != "new" else None
        cosine = self._clusters.cosine(member.terms, cluster, self._term_weights.weigh) if cluster else 0.0
        return (cluster, cosine) if cosine >= JOIN_RELATED_COSINE else (None, 0.0)

    def _cluster_containing(self, number: int | None) -> Cluster | None:
        key = self._clusters.key_by_number.get(number) if number is not None else None
        return self._clusters.by_key[key] if key is not None else None

    def add(self, cluster: Cluster, member: WindowItem) -> None:
        """Add an item to a cluster, and to its event if it is one."""
        self._clusters.add_item(cluster, member)
        if cluster.event_id is not None:
            self._open_events.add_items(cluster, [member])


def create_cluster(clusters: ClusterIndex, member: WindowItem, suffix: str = "") -> Cluster:
    """New cluster; its id depends on its first item alone, so that a replayed stream gives the same ids.

    ``suffix``: for a part of a divided cluster, whose first item may be that of the other part.
    """
    seed = f"{member.first_version}:{member.id}{suffix}".encode("utf-8", "surrogatepass")
    return clusters.create(xxhash.xxh3_64_hexdigest(seed))
