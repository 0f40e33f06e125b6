"""Merging of clusters that converge, and division of those that hold two topics. Events follow.

A cluster that grew is merged with those whose centroid or bursting terms converged with it, nearest first.
**Fragments** (one names the town, one the victims) belong together if their key terms burst in the same
documents (bursty features: Fung, Yu, Yu & Lu 2005); two events must also share half of their key terms.

**Division.** A cluster is divided when the items with one of its key terms and those without it have no key
terms in common but a connecting one::

    cluster of 130 items   key terms "bank" (97 %), "clothier" (48 %), "governor" (22 %)
    with "clothier"      bank, clothier, offer, suit
    without it           bank, governor, rates, pound       only "bank" in common: two clusters

*Outliers*, items that hold no term of which 0.9 of the documents are in the cluster, leave the event.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from aggregator.events.detection.clustering import (
    JOIN_RELATED_COSINE,
    MAX_TERM_WEIGHT,
    MIN_ITEMS_TO_MERGE,
    Cluster,
    ClusterIndex,
    TermWeigher,
    WindowItem,
)
from aggregator.events.detection.description import (
    KeyTermCache,
    heaviest_terms,
    terms_support_merge,
)
from aggregator.events.detection.expectation import TermWeights
from aggregator.events.detection.lifecycle import OpenEvents
from aggregator.events.detection.model import EditorOverrides

# Share of the documents with the rarer key term that must hold the other too.
MERGE_SHARE = 0.2
# A part below this share of the items is a side of the topic, not a topic.
MIN_PART_ITEMS = 5
MIN_PART_SHARE = 0.15
# Fewer items do not show two topics.
MIN_CLUSTER_ITEMS = 16
# Cosine of the two parts without the connecting term up to which they are two topics.
MAX_PARTS_COSINE = 0.1

# A term is own to a cluster that has this share of its documents in the window, and at least three of them.
OWN_TERM_SHARE = 0.9
MIN_OWN_TERM_ITEMS = 3
# More items without an own term are not outliers: the cluster has no subject of its own.
MAX_STRAY_SHARE = 0.25


def find_merge_partner(
    clusters: ClusterIndex, cluster: Cluster, term_weights: TermWeights, key_terms: KeyTermCache
) -> Cluster | None:
    """The cluster with the largest share of common documents (the older on a tie), if any qualifies."""
    own_term = key_terms.top_term(cluster)
    if not term_weights.is_bursting(own_term):
        return None
    own_count, sums = term_weights.window_count(own_term), cluster.term_sums

    def share_of(total: int, term: str) -> float:
        """Share of the documents with the rarer of both key terms that a sum of weights is."""
        return total / MAX_TERM_WEIGHT / min(own_count, term_weights.window_count(term))

    # The other holds the own term, or its key term is one of which this cluster alone has enough.
    enough = [t for t in term_weights.bursting_terms(sums) if share_of(sums[t], t) >= MERGE_SHARE]
    own_terms = set(key_terms.top_terms(cluster))
    best, best_share = None, 0.0
    for other in clusters.with_any_term([own_term, *enough]):
        # A necessary condition on the key terms of the other cluster, cheaper than finding them.
        if other is cluster or not terms_support_merge(
            own_terms & other.term_sums.keys(), term_weights.expected
        ):
            continue
        other_term = key_terms.top_bursting_term(other)
        if not other_term:
            continue
        share = share_of(sums.get(other_term, 0) + other.term_sums.get(own_term, 0), other_term)
        if (
            share >= MERGE_SHARE
            and share > best_share
            and key_terms.top_term(other) == other_term
            and key_terms.support_merge(cluster, other)
            and not (cluster.event_id and other.event_id and not key_terms.agree(cluster, other))
        ):
            best, best_share = other, share
    return best


class ClusterMerger:
    """Merges and divides the clusters of a detector. ``check_burst``: called for a cluster that changed."""

    def __init__(
        self,
        clusters: ClusterIndex,
        open_events: OpenEvents,
        term_weights: TermWeights,
        check_burst: Callable[[Cluster], None],
    ) -> None:
        self._clusters, self._open_events = clusters, open_events
        self._term_weights, self._check_burst = term_weights, check_burst

    def merge_changed_steps(self, overrides: EditorOverrides, clock_ms: int) -> Iterator[None]:
        """Merge, then divide, what grew, oldest first, in steps; what editors merged is not divided."""
        key_terms = KeyTermCache(self._term_weights)
        for key in sorted(self._clusters.changed_keys):
            yield from self._merge_with_candidates(key, key_terms, clock_ms)
        for key in sorted(self._clusters.changed_keys):
            self._divide(key, key_terms, overrides, clock_ms)

    def merge(self, into: Cluster, absorbed: Cluster, clock_ms: int) -> None:
        """Move all items of ``absorbed`` into ``into``; if both are events, that of ``absorbed`` closes."""
        absorbed_event = (
            self._open_events.by_id.pop(absorbed.event_id) if absorbed.event_id is not None else None
        )
        moved = self._clusters.merge(into, absorbed)
        if absorbed_event is not None:
            self._open_events.absorb(into, absorbed_event, clock_ms)
        elif into.event_id is not None:
            self._open_events.add_items(into, self._related_items(into, moved))
        else:
            self._check_burst(into)

    def _merge_with_candidates(self, key: int, key_terms: KeyTermCache, clock_ms: int) -> Iterator[None]:
        clusters, weights = self._clusters, self._term_weights
        while (cluster := clusters.by_key.get(key)) is not None and len(
            cluster.members
        ) >= MIN_ITEMS_TO_MERGE:
            other = clusters.find_merge_candidate(
                cluster, key_terms.top_terms(cluster), weights.weigh, key_terms.support_merge
            ) or find_merge_partner(clusters, cluster, weights, key_terms)
            yield
            if other is None:
                return
            into, absorbed = self._survivor(cluster, other)
            self.merge(into, absorbed, clock_ms)
            key_terms.invalidate(into)
            key = into.key

    def _divide(self, key: int, key_terms: KeyTermCache, overrides: EditorOverrides, clock_ms: int) -> None:
        cluster = self._clusters.by_key[key]
        if len(cluster.members) < MIN_CLUSTER_ITEMS:
            return
        if any(into == cluster.event_id for into, _ in overrides.merges.values()):
            return  # by an editor
        weights = self._term_weights
        if cluster.event_id is not None:
            self._remove_outliers(cluster, clock_ms)
            key_terms.invalidate(cluster)
        part = find_division(cluster, key_terms.top_terms(cluster), weights.weigh, weights.expected)
        if part is None:
            return
        self._open_events.release_items(cluster, part)
        divided = self._clusters.create(part[0], f":{clock_ms}")
        for member in part:
            self._clusters.remove_item(member)
            self._clusters.add_item(divided, member)
        key_terms.invalidate(cluster)
        for each in (cluster, divided):
            if each.event_id is None:
                self._check_burst(each)

    def _remove_outliers(self, cluster: Cluster, clock_ms: int) -> None:
        outliers = find_outliers(cluster, self._term_weights.window_count)
        if not outliers:
            return
        self._open_events.release_items(cluster, outliers)
        for member in outliers:
            self._clusters.remove_item(member)
            self._clusters.add_item(self._clusters.create(member, f":{clock_ms}"), member)
        self._open_events.refresh_headlines()

    def _related_items(self, cluster: Cluster, moved: Iterable[WindowItem]) -> Iterator[WindowItem]:
        """The moved items similar to their new cluster: its event does not list unrelated ones."""
        for member in moved:
            member.cosine = self._clusters.cosine(member.terms, cluster, self._term_weights.weigh)
            if member.cosine >= JOIN_RELATED_COSINE:
                yield member

    def _survivor(self, a: Cluster, b: Cluster) -> tuple[Cluster, Cluster]:
        """(survivor, absorbed): the event detected first survives, else the larger, else the older one."""

        def rank(cluster: Cluster) -> tuple[float, int, int]:
            event = self._open_events.event_of_cluster(cluster)
            return event.detected_at_ms if event else float("inf"), -len(cluster.members), cluster.key

        return (a, b) if rank(a) < rank(b) else (b, a)


def find_division(
    cluster: Cluster, top_terms: Sequence[str], weigh: TermWeigher, expected: Callable[[str], float]
) -> list[WindowItem] | None:
    """Return the smaller of two topics, in order of joining, or None; ``expected``: usual documents."""
    members = list(cluster.members.values())
    min_items = max(MIN_PART_ITEMS, MIN_PART_SHARE * len(members))
    for term in top_terms:
        if cluster.term_sums[term] > MAX_TERM_WEIGHT * (len(members) - min_items):
            continue  # too many items hold it, without counting them
        inside = [member for member in members if term in member.terms]
        if not min_items <= len(inside) <= len(members) - min_items:
            continue
        outside = [member for member in members if term not in member.terms]
        part = min(outside, inside, key=len)
        sums: Counter[str] = Counter()
        for member in part:
            sums.update(member.terms)
        rest = {t: total - sums.get(t, 0) for t, total in cluster.term_sums.items() if total != sums.get(t)}
        connecting = set(heaviest_terms(sums, weigh)).intersection(heaviest_terms(rest, weigh))
        if terms_support_merge(connecting, expected):
            continue
        if _cosine(_weighted(sums, weigh), _weighted(rest, weigh), connecting) <= MAX_PARTS_COSINE:
            return part
    return None


def find_outliers(cluster: Cluster, window_count: Callable[[str], int]) -> list[WindowItem]:
    """Return the items without an own term, in order of joining; none if they are too many."""
    counts = Counter(term for member in cluster.members.values() for term in member.terms)
    own = {
        term
        for term, count in counts.items()
        if count >= MIN_OWN_TERM_ITEMS and count >= OWN_TERM_SHARE * window_count(term)
    }
    outliers = [member for member in cluster.members.values() if own.isdisjoint(member.terms)]
    return outliers if len(outliers) <= MAX_STRAY_SHARE * len(cluster.members) else []


def _weighted(sums: Mapping[str, int], weigh: TermWeigher) -> dict[str, float]:
    return {term: weight * weigh(term) for term, weight in sums.items()}


def _cosine(a: dict[str, float], b: dict[str, float], without: set[str]) -> float:
    squares_a = sum(w * w for t, w in a.items() if t not in without)
    squares_b = sum(w * w for t, w in b.items() if t not in without)
    dot = sum(w * b[t] for t, w in a.items() if t in b and t not in without)
    return dot / math.sqrt(squares_a * squares_b) if dot else 0.0
