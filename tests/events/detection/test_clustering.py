"""Clusters as centroids: nearest cluster, merging, consistency of sums, postings and norms."""

from __future__ import annotations

import math
import random
import sys

import pytest
from hypothesis import given, settings

from aggregator.events.detection import clustering
from aggregator.events.detection.clustering import JOIN_COSINE, MAX_TERM_WEIGHT, NORM_STALE_MINUTES, Cluster
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import BurstRule
from tests.events.detection.random_steps import Step, feed_steps, steps
from tests.events.detection.window_items import sums_by_term, window_item
from tests.support.detector_stream import DetectorStream


def test_a_cluster_does_not_grow_by_a_chain_of_neighbors() -> None:
    """Each item shares half its words with the previous one and none with the first."""
    stream = DetectorStream()

    for i in range(60):
        stream.send(i, f"link{i} link{i + 1}")

    assert stream.fired == []


@pytest.mark.parametrize(("items", "examined_after"), [(2, 2), (10, 1), (40, 3), (100, 6)])
def test_a_cluster_is_examined_again_when_a_twentieth_of_it_is_new(items: int, examined_after: int) -> None:
    """A small one with every item, but not below the size at which clusters merge."""
    index = clustering.ClusterIndex()
    cluster = index.create(window_item(0))
    for number in range(items):
        index.add_item(cluster, window_item(number, "storm"))
    assert bool(index.changed_keys) == (items >= clustering.MIN_ITEMS_TO_MERGE)
    index.end_round()

    for added in range(1, examined_after + 1):
        assert not index.changed_keys
        index.add_item(cluster, window_item(items + added, "storm"))
    assert list(index.changed_keys) == [cluster.key]
    index.end_round()
    assert not index.changed_keys


def test_two_parts_of_a_minute_that_begin_with_one_item_have_different_ids() -> None:
    """Two events of one id: one closed the other, and the detector stopped at a missing event."""
    index = clustering.ClusterIndex()
    member = window_item(0)

    first, second, whole = (
        index.create(member, ":60000"),
        index.create(member, ":60000"),
        index.create(member),
    )

    assert len({first.id, second.id, whole.id}) == 3
    assert index.create(member).id == whole.id


@settings(max_examples=30, deadline=None)
@given(given_steps=steps)
def test_sums_and_postings_match_the_members(given_steps: list[Step]) -> None:
    """After any stream, centroids, counts, postings and norms agree with the items in the window."""
    detector = BurstDetector(BurstRule(items=4))
    feed_steps(detector, DetectorStream(), given_steps)

    index = detector.clusters
    expected_postings: dict[str, dict[int, int]] = {}
    for cluster in index.by_key.values():
        sums: dict[str, int] = {}
        for member in cluster.members.values():
            for term, weight in member.terms.items():
                sums[term] = sums.get(term, 0) + weight
        assert cluster.term_sums == sums
        assert cluster.counted_items == sum(m.is_counted for m in cluster.members.values())
        for term, weight in sums.items():
            expected_postings.setdefault(term, {})[index._slots[cluster.key]] = weight
    assert sums_by_term(index._postings) == expected_postings
    assert index._slots.keys() == index.by_key.keys()
    for slot in index._postings._free_slots:  # an emptied dictionary would keep its memory
        assert sys.getsizeof(index._postings._offsets[slot]) == sys.getsizeof({})
    assert sorted(m.first_version for m in detector.window) == sorted(
        m.first_version for s in index.by_key.values() for m in s.members.values()
    )
    assert all(index._by_slot[slot].key == key for key, slot in index._slots.items())


def nearest_by_exhaustive_search(
    detector: BurstDetector, terms: dict[str, int]
) -> tuple[Cluster | None, float]:
    """``ClusterIndex.nearest``, one cluster and one term at a time."""
    weigh = detector.term_weights.weigh
    weighed = [(weigh(term), term, weight) for term, weight in terms.items()]
    length = math.sqrt(sum((w * x) ** 2 for w, _, x in weighed))
    parts = sorted((-(w * w * x) * x, term, w * w * x) for w, term, x in weighed)
    remaining, prefix = length * length, set()
    for part, term, _ in parts:
        if remaining >= JOIN_COSINE * JOIN_COSINE * length * length:
            prefix.add(term)
        remaining += part
    best, nearest = None, 0.0
    for _, cluster in sorted(detector.clusters.by_key.items()):
        if prefix.isdisjoint(cluster.term_sums):
            continue
        dot = 0.0
        for _, term, square in parts:
            dot += square * cluster.term_sums.get(term, 0)
        cosine = dot / (length * detector.clusters._refreshed_norm(cluster, weigh, NORM_STALE_MINUTES))
        if cosine > nearest:
            best, nearest = cluster, cosine
    return (best, min(1.0, nearest)) if nearest >= JOIN_COSINE else (None, 0.0)


@pytest.mark.integration
def test_the_nearest_cluster_is_that_of_an_exhaustive_search() -> None:
    """To the last bit of the cosine, while clusters grow, merge, expire and reuse slots."""
    found = 0
    for seed in range(4):
        rng, stream = random.Random(seed), DetectorStream()
        detector = BurstDetector(BurstRule(items=10))
        words = [f"word{i}" for i in range(60)]
        for i in range(400):
            item_words = rng.sample(words[: rng.choice([6, 60])], rng.randint(1, 5))
            terms = tuple((word, rng.choice([1.0, 0.6, 0.2])) for word in item_words)
            detector.observe(item := stream.item(i * 0.7, " ".join(item_words), terms=terms), item.arrived_ms)
            query = {word: rng.randint(1, MAX_TERM_WEIGHT) for word in rng.sample(words, 4)}
            nearest = detector.clusters.nearest(query, detector.term_weights.weigh)
            assert nearest == nearest_by_exhaustive_search(detector, query)
            found += nearest[0] is not None
        assert len(detector.clusters._postings._offsets) < detector.clusters.next_key  # slots were reused

    assert found
