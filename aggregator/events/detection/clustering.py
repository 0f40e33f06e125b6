"""Clusters: single-pass clustering of the window's items by centroid, never by chains of neighbors.

The centroid is the sums of the term weights of the items of the last window. An item's similarity to it is
the cosine between its terms and those sums, both weighted by how distinctive each term is *now*
(``Baseline.weight``). Products are summed term by term in a fixed order, and no set is iterated where order
matters: equal input gives equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import mul

import msgspec
import numpy as np
import xxhash

from aggregator.analysis.term_profile import OPENING_WEIGHT
from aggregator.events.detection.model import NEGLIGIBLE_SHARE
from aggregator.events.detection.postings import Postings, columns

# Cosine at which an item joins a cluster, and at which two clusters merge. Values of 0.3 to 0.4 and 0.4 to
# 0.55 give similar results.
JOIN_COSINE = 0.35
MERGE_COSINE = 0.45
MIN_ITEMS_TO_MERGE = 4  # the centroid of a smaller cluster is not reliable enough for merging
MIN_ITEMS_TO_BE_MERGED = 2
NORM_STALE_MINUTES = 10  # a norm is computed again after this time, for a merge every minute
# Largest weight of a term in an item (``items.py``); a cluster of n items holds at most n times that.
MAX_TERM_WEIGHT = 255
_OPENING = round(MAX_TERM_WEIGHT * OPENING_WEIGHT)  # largest weight of a term outside the headline
# Latest items of a cluster that decide whether it is news: a series of hundreds is checked with every item.
MAX_EXAMINED_ITEMS = 64

TermWeigher = Callable[[str], float]


class WindowItem(msgspec.Struct, array_like=True, gc=False):
    """One article in the window. The order of the fields is part of the saved state.

    terms        term -> weight, an integer 1..255, so that sums are exact
    is_counted   whether it counts towards the burst rule
    cosine       similarity to its cluster when it joined, 0..1; ``cluster_key`` -1: no cluster
    desk_prefix  what was removed from the start of the headline as it was sent ("UPDATE 2-")
    is_usual     whether its source publishes here on most days (``voices.py``)
    published_ms  of a late item, which is in the window from its arrival: when it was published; else 0
    claim_ms     see ``numbers.Item``; ``titled_ms``: of a later version, whose headline it has, else 0
    """

    number: int
    first_version: int
    id: str
    at_ms: int
    source: str
    title: str
    terms: dict[str, int]
    is_counted: bool
    cosine: float
    cluster_key: int
    lang: str = ""
    desk_prefix: str = ""
    is_usual: bool = False
    published_ms: int = 0
    claim_ms: int | None = None
    titled_ms: int = 0

    @property
    def headline_terms(self) -> list[str]:
        """The terms of the headline; of an article without one, the heaviest."""
        return [term for term, weight in self.terms.items() if weight > _OPENING]


class Cluster(msgspec.Struct, array_like=True, gc=False):
    """Items of one centroid. The order of the fields is part of the saved state.

    members         items by first version, in order of joining; term_sums: term -> sum of their weights
    counted_items   members that count towards the burst rule; sightings: duplicates that do not
    norm            weighted norm of the sums, computed at ``norm_size`` members in ``norm_minute``
    new_items       members that joined since the cluster was last examined for merges
    since_ms        time of the first item of this cluster and of those merged into it
    """

    key: int
    id: str
    members: dict[int, WindowItem] = {}
    term_sums: dict[str, int] = {}
    counted_items: int = 0
    sightings: int = 0
    norm: float = 0.0
    norm_size: int = 0
    norm_minute: int = -NORM_STALE_MINUTES
    event_id: str | None = None
    new_items: int = 0
    since_ms: int = 0


MergePredicate = Callable[[Cluster, Cluster], bool]


class ClusterIndex:
    """The open clusters by key, number and term; ``changed_keys``: those that grew, for the next merging.

    ``minute``: the clock, by which norms expire.
    """

    def __init__(self) -> None:
        self.by_key: dict[int, Cluster] = {}
        self.next_key = 0
        self.changed_keys: dict[int, None] = {}
        self.minute = 0
        self.key_by_number: dict[int, int] = {}
        self._postings = Postings()
        self._slots: dict[int, int] = {}  # by cluster key
        self._by_slot: list[Cluster] = []

    def create(self, member: WindowItem, suffix: str = "") -> Cluster:
        """Return a new, empty cluster. Its id: of its first item and, in a division, ``suffix`` and key."""
        seed = f"{member.first_version}:{member.id}{suffix}{self.next_key if suffix else ''}"
        id_ = xxhash.xxh3_64_hexdigest(seed.encode("utf-8", "surrogatepass"))
        self._assign_slot(cluster := Cluster(self.next_key, id_, since_ms=member.at_ms))
        self.next_key += 1
        return cluster

    def nearest(self, terms: Mapping[str, int], weigh: TermWeigher) -> tuple[Cluster | None, float]:
        """Return the nearest cluster (the older on a tie), its cosine; (None, 0.0) below ``JOIN_COSINE``."""
        weights = [(term, weigh(term), weight) for term, weight in terms.items()]
        length = math.sqrt(sum([(w * x) ** 2 for _, w, x in weights]))
        parts = sorted([(-(w * w * x) * x, term, w * w * x) for term, w, x in weights])
        posted = self._postings.lookup([term for _, term, _ in parts])
        lengths, (slots, sums) = list(map(len, posted)), columns(posted)
        products = sums * np.array([factor for _, _, factor in parts]).repeat(lengths)
        prefix_end = sum(lengths[: _prefix_length(parts, length)])
        candidates = np.bincount(slots[:prefix_end], products[:prefix_end]).nonzero()[0]
        best, nearest = None, 0.0
        dots = np.bincount(slots, products)[candidates]
        for slot, dot in zip(candidates.tolist(), dots.tolist(), strict=True):
            cluster = self._by_slot[slot]
            cosine = dot / (length * self._refreshed_norm(cluster, weigh, NORM_STALE_MINUTES))
            if cosine > nearest or (cosine == nearest and best is not None and cluster.key < best.key):
                best, nearest = cluster, cosine
        return (best, min(1.0, nearest)) if nearest >= JOIN_COSINE else (None, 0.0)

    def add_item(self, cluster: Cluster, member: WindowItem) -> None:
        """Add an item. Its first version must not be in any cluster."""
        member.cluster_key = cluster.key
        cluster.members[member.first_version] = member
        self.key_by_number[member.first_version] = cluster.key
        if member.number != member.first_version:
            self.key_by_number[member.number] = cluster.key
        cluster.counted_items += member.is_counted
        self._postings.add(self._slots[cluster.key], cluster.term_sums, member.terms)
        cluster.new_items += 1
        size = len(cluster.members)
        if size >= MIN_ITEMS_TO_MERGE and cluster.new_items >= NEGLIGIBLE_SHARE * size:
            self.changed_keys[cluster.key] = None

    def find_item(self, first_version: int) -> WindowItem | None:
        """Return the item with this first version, if it is in a cluster."""
        key = self.key_by_number.get(first_version)
        return self.by_key[key].members.get(first_version) if key is not None else None

    def renumber(self, member: WindowItem, number: int) -> None:
        """Register the number of a new version of an item; the one of the previous version is dropped."""
        if member.number != member.first_version:
            self.key_by_number.pop(member.number, None)
        member.number = number
        if member.cluster_key >= 0:
            self.key_by_number[number] = member.cluster_key

    def remove_item(self, member: WindowItem) -> Cluster:
        """Remove an item and return its former cluster, which is closed if it was the last item."""
        cluster = self.by_key[member.cluster_key]
        del cluster.members[member.first_version]
        self.key_by_number.pop(member.first_version, None)
        self.key_by_number.pop(member.number, None)
        cluster.counted_items -= member.is_counted
        self._postings.subtract(self._slots[cluster.key], cluster.term_sums, member.terms)
        if not cluster.members:
            self._release_slot(cluster)
        return cluster

    def merge(self, into: Cluster, other: Cluster) -> list[WindowItem]:
        """Move all items of ``other`` into ``into``; returns them in order of time."""
        moved = sorted(other.members.values(), key=lambda m: (m.at_ms, m.number))
        for member in moved:
            member.cluster_key = into.key
            into.members[member.first_version] = member
            self.key_by_number[member.first_version] = self.key_by_number[member.number] = into.key
        sums = dict(other.term_sums)
        self._postings.subtract(self._slots[other.key], other.term_sums, sums)
        self._postings.add(self._slots[into.key], into.term_sums, sums)
        into.sightings += other.sightings
        into.counted_items += other.counted_items
        into.since_ms = min(into.since_ms, other.since_ms)
        into.norm_minute = -NORM_STALE_MINUTES
        self._release_slot(other)
        self.changed_keys[into.key] = None
        return moved

    def find_merge_candidate(
        self, cluster: Cluster, top_terms: Sequence[str], weigh: TermWeigher, may_merge: MergePredicate
    ) -> Cluster | None:
        """The nearest cluster by the key terms ``top_terms``, from ``MERGE_COSINE`` on, that may merge."""
        own_norm = self._refreshed_norm(cluster, weigh)
        weights = [weigh(term) for term in top_terms]
        own_sums = [weight * cluster.term_sums[term] for weight, term in zip(weights, top_terms, strict=True)]
        posted = self._postings.lookup(top_terms)
        lengths, (slots, sums) = list(map(len, posted)), columns(posted)
        weighted = np.array(weights).repeat(lengths) * sums
        dots = np.bincount(slots, np.array(own_sums).repeat(lengths) * weighted)
        # The norm over all terms is at least that over the common ones: most candidates end here.
        least = MERGE_COSINE * own_norm * np.sqrt(np.bincount(slots, weighted * weighted))
        near = ((dots > 0) & (dots >= least)).nonzero()[0]
        clusters = map(self._by_slot.__getitem__, near.tolist())
        found = zip(clusters, dots[near].tolist(), strict=True)
        best, nearest = None, MERGE_COSINE
        for other, dot in sorted(found, key=lambda entry: entry[0].key):
            if other is cluster or len(other.members) < MIN_ITEMS_TO_BE_MERGED:
                continue
            cosine = dot / (own_norm * self._refreshed_norm(other, weigh))
            if (cosine > nearest or (best is None and cosine == nearest)) and may_merge(cluster, other):
                best, nearest = other, cosine
        return best

    def end_round(self) -> None:
        """Forget what changed: all of it has been examined."""
        for key in self.changed_keys:
            self.by_key[key].new_items = 0
        self.changed_keys.clear()

    def with_any_term(self, terms: Iterable[str]) -> list[Cluster]:
        """The clusters that hold any of these terms and are large enough to be merged, oldest first."""
        slots, _ = columns(self._postings.lookup(terms))
        found = map(self._by_slot.__getitem__, set(slots.tolist()))
        large = [cluster for cluster in found if len(cluster.members) >= MIN_ITEMS_TO_BE_MERGED]
        return sorted(large, key=lambda cluster: cluster.key)

    def restore(self, clusters: Iterable[Cluster], next_key: int) -> None:
        """Add saved clusters to an empty index."""
        self.next_key = next_key
        for cluster in clusters:
            slot = self._assign_slot(cluster)
            for member in cluster.members.values():
                self.key_by_number[member.first_version] = self.key_by_number[member.number] = cluster.key
            self._postings.add(slot, {}, cluster.term_sums)

    def _refreshed_norm(self, cluster: Cluster, weigh: TermWeigher, max_age_minutes: int = 1) -> float:
        size = len(cluster.members)
        fresh = 0 <= self.minute - cluster.norm_minute < max_age_minutes
        if not fresh or abs(size - cluster.norm_size) >= max(1.0, cluster.norm_size * NEGLIGIBLE_SHARE):
            squares = 0.0  # a loop, because the rounding of sum() differs between Python versions
            for weighted in map(mul, map(weigh, cluster.term_sums), cluster.term_sums.values()):
                squares += weighted * weighted
            cluster.norm = math.sqrt(squares)
            cluster.norm_size, cluster.norm_minute = size, self.minute
        return cluster.norm

    # -- slots ---------------------------------------------------------------------------------

    def _assign_slot(self, cluster: Cluster) -> int:
        self.by_key[cluster.key] = cluster
        slot = self._slots[cluster.key] = self._postings.allocate_slot()
        self._by_slot[slot : slot + 1] = [cluster]
        return slot

    def _release_slot(self, cluster: Cluster) -> None:
        del self.by_key[cluster.key]
        self.changed_keys.pop(cluster.key, None)
        self._postings.free_slot(self._slots.pop(cluster.key))


def _prefix_length(parts: Sequence[tuple[float, str, float]], length: float) -> int:
    """Number of terms at the start of ``parts`` of which a cluster must hold one to reach ``JOIN_COSINE``.

    Prefix filtering (Chaudhuri, Ganti & Kaushik 2006): a cluster that shares only the remaining, lightest
    terms, whose norm is less than ``JOIN_COSINE`` times the item's, cannot reach that cosine.
    """
    remaining, required = length * length, JOIN_COSINE * JOIN_COSINE * length * length
    for count, (negative_square, _, _) in enumerate(parts):
        if remaining < required:
            return count
        remaining += negative_square
    return len(parts)
