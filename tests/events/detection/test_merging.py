"""Merging of small clusters whose key terms burst in the same documents."""

from __future__ import annotations

import random

from aggregator.events.detection import BurstDetector, BurstRule, key_terms, merging
from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, MIN_ITEMS_TO_BE_MERGED, Cluster
from aggregator.events.detection.key_terms import KeyTermCache
from aggregator.events.detection.merging import MERGE_SHARE
from tests.support.detector_stream import DetectorStream


def send_fragments(stream: DetectorStream, overlap: str) -> None:
    """Send ten items on a shooting, the first six with the words ``overlap``, and eight on a town."""
    for i in range(10):
        stream.send(i, overlap if i < 6 else "shooting gunman theatre")
        if i < 8:
            stream.send(i + 0.5, f"summerton mourners{i} candles{i} vigil{i}")


def test_fragments_whose_terms_burst_in_the_same_documents_are_merged() -> None:
    """Neither has 16 items; the items that name both town and shooting connect them."""
    stream = DetectorStream()
    send_fragments(stream, "shooting gunman theatre summerton")
    stream.tick(12)

    assert len(stream.fired) == 1
    assert stream.last_event().size == 18


def test_fragments_that_only_burst_at_the_same_time_stay_apart() -> None:
    """No document holds both key terms: two topics of ten and eight items, no event."""
    stream = DetectorStream()
    send_fragments(stream, "shooting gunman theatre")
    stream.tick(12)

    assert stream.fired == []


def partner_by_exhaustive_search(detector: BurstDetector, cluster: Cluster) -> Cluster | None:
    """``find_merge_partner`` without its shortcuts."""
    weights, weight_share = detector.term_weights, MAX_TERM_WEIGHT * MERGE_SHARE
    own_term = key_terms.top_term(cluster, weights.weigh)
    best, best_share = None, 0.0
    for other in detector.clusters.by_key.values():
        other_term = key_terms.top_term(other, weights.weigh)
        if other is cluster or len(other.members) < MIN_ITEMS_TO_BE_MERGED:
            continue
        if other.event_id and cluster.event_id and not KeyTermCache(weights).agree(cluster, other):
            continue
        if not (weights.is_bursting(own_term) and weights.is_bursting(other_term)):
            continue
        own_sum = other.term_sums.get(own_term, 0)
        common = [
            t for t in cluster.term_sums if t != own_term and t in other.term_sums and weights.is_bursting(t)
        ]
        largest = max([own_sum, *(cluster.term_sums[t] + own_sum for t in common)])
        if largest < weight_share * weights.min_burst_documents:
            continue
        both = cluster.term_sums.get(other_term, 0) + own_sum
        rarer = min(weights.window_count(own_term), weights.window_count(other_term))
        share = both / MAX_TERM_WEIGHT / rarer
        if (
            share >= MERGE_SHARE
            and share > best_share
            and KeyTermCache(weights).support_merge(cluster, other)
        ):
            best, best_share = other, share
    return best


def test_the_merge_partner_is_that_of_an_exhaustive_search() -> None:
    """For every cluster of 8 random streams, after each item."""
    partners = 0
    for seed in range(8):
        rng, stream = random.Random(seed), DetectorStream()
        detector = BurstDetector(BurstRule(items=10))
        words = ["harbour", "bridge", "ferry", "estmark", "fire", "strike", "vote"]
        topics = [rng.sample(words, 3) for _ in range(4)]
        for i in range(120):
            item_words = rng.sample(rng.choice(topics), rng.choice([1, 1, 1, 2]))
            detector.observe(item := stream.item(i / 4, " ".join(item_words)), item.arrived_ms)
            for cluster in detector.clusters.by_key.values():
                found = merging.find_merge_partner(
                    detector.clusters, cluster, detector.term_weights, KeyTermCache(detector.term_weights)
                )
                assert found is partner_by_exhaustive_search(detector, cluster)
                partners += found is not None

    assert partners
