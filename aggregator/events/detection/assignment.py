"""Assignment of items to clusters: that of the duplicate, the nearest, or a new one."""

from __future__ import annotations

from aggregator.domain import StreamItem
from aggregator.events.detection.clustering import Cluster, ClusterIndex, WindowItem
from aggregator.events.detection.expectation import TermWeights
from aggregator.events.detection.lifecycle import OpenEvents


class ClusterAssignment:
    """Finds the cluster of each item."""

    def __init__(self, clusters: ClusterIndex, open_events: OpenEvents, term_weights: TermWeights) -> None:
        self._clusters, self._open_events, self._term_weights = clusters, open_events, term_weights

    def cluster_of_duplicate(self, item: StreamItem) -> Cluster | None:
        """Cluster of the article that this one duplicates, if it is in the window."""
        if item.verdict != "duplicate":
            return None
        return self._cluster_containing(item.canonical_first) or self._cluster_containing(item.matched_number)

    def assign(self, member: WindowItem, duplicate_cluster: Cluster | None) -> Cluster:
        """Add an item of the window to its cluster, which may be new, and return it."""
        cluster, member.cosine = self.nearest_cluster(member, duplicate_cluster)
        if cluster is None:
            cluster, member.cosine = self._clusters.create(member), 1.0
        self.add(cluster, member)
        return cluster

    def nearest_cluster(
        self, member: WindowItem, duplicate_cluster: Cluster | None
    ) -> tuple[Cluster | None, float]:
        """The cluster that an item belongs to, None for a new one, and the item's cosine to it."""
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
