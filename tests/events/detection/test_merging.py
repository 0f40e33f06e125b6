"""Merging of clusters that converge, division of those that hold two topics, and items that leave."""

from __future__ import annotations

import random

import pytest

from aggregator.events.detection import description, merging
from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, MIN_ITEMS_TO_BE_MERGED, Cluster
from aggregator.events.detection.description import KeyTermCache, heaviest_terms
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.lifecycle import OpenEvent
from aggregator.events.detection.merging import MERGE_SHARE, find_division, find_outliers
from aggregator.events.detection.model import BurstRule, EditorOverrides
from tests.events.detection.window_items import cluster_of, window_item
from tests.support.detector_stream import DetectorStream, time_ms


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
    own_term = description.top_term(cluster, weights.weigh)
    best, best_share = None, 0.0
    for other in detector.clusters.by_key.values():
        other_term = description.top_term(other, weights.weigh)
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


@pytest.mark.integration
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


USUAL = {"bank": 2.0}


def weigh(term: str) -> float:
    return 1.0


def division(*parts: tuple[int, str], usual: dict[str, float]) -> list[str] | None:
    """Ids of the smaller topic of a cluster with these numbers of items of these words."""
    words = [words for count, words in parts for _ in range(count)]
    cluster = cluster_of(*(window_item(i, f"{text} own{i}") for i, text in enumerate(words)))
    part = find_division(
        cluster, heaviest_terms(cluster.term_sums, weigh), weigh, lambda term: usual.get(term, 0.0)
    )
    return None if part is None else [member.id for member in part]


def test_the_smaller_of_two_topics_that_share_one_usual_word_is_found() -> None:
    """Two key terms in common, or one that is otherwise unused, hold a cluster together."""
    clothier, governor = (12, "bank clothier offer"), (6, "bank governor rates")
    assert division(clothier, governor, usual=USUAL) == [f"a{i}" for i in range(12, 18)]
    assert division(clothier, governor, usual={}) is None
    assert division(clothier, (6, "bank offer rates"), usual={**USUAL, "offer": 1.0}) is None


def test_a_few_items_are_a_side_of_the_topic() -> None:
    """A part has at least 5 items and 15 % of the cluster."""
    assert division((14, "bank clothier offer"), (4, "bank governor rates"), usual=USUAL) is None
    assert division((45, "bank clothier offer"), (6, "bank governor rates"), usual=USUAL) is None


def test_items_of_another_topic_leave_the_event() -> None:
    """They become a cluster of their own, and the articles that left are reported."""
    stream = DetectorStream()
    for hour in range(-240, 0):
        stream.send(hour * 60, f"topic{hour}" if hour % 2 else f"bank topic{hour}")
    for i in range(20):
        stream.send(1 + i * 0.1, "bank governor rates")
    for i in range(18):
        stream.send(10 + i * 0.1, "bank clothier offer")
    one, other = (stream.detector.clusters.by_key[event.cluster_key] for event in open_events(stream))
    stream.detector.merger.merge(one, other, stream.detector.clock_ms)

    stream.send(12.5, "bank governor rates")
    stream.tick(15)

    assert sorted(event.size for event in open_events(stream)) == [18, 21]
    assert sum(len(change.released_numbers) for change in stream.changes) == 18


def test_what_an_editor_merged_stays_together() -> None:
    """The same two topics."""
    stream = DetectorStream()
    for hour in range(-240, 0):
        stream.send(hour * 60, f"topic{hour}" if hour % 2 else f"bank topic{hour}")
    for words in ("bank governor rates", "bank clothier offer"):
        stream.send_burst(20, words=words, step=0.1)
    one, other = stream.detector.events
    stream.detector.set_overrides(EditorOverrides(merges={other.id: (one.id, time_ms(5))}))

    stream.send(12.5, "bank governor rates")
    stream.tick(15)

    assert [event.size for event in stream.detector.events] == [41]


def open_events(stream: DetectorStream) -> list[OpenEvent]:
    """The open events of the detector, in order of detection."""
    return list(stream.detector.open_events.by_id.values())


def outliers(*parts: tuple[int, str], elsewhere: dict[str, int]) -> list[str]:
    """Ids of the outliers of a cluster of these items, when ``elsewhere`` other documents hold a term."""
    words = [words for count, words in parts for _ in range(count)]
    cluster = cluster_of(*(window_item(i, f"{text} own{i}") for i, text in enumerate(words)))
    count = {t: total // 255 + elsewhere.get(t, 0) for t, total in cluster.term_sums.items()}
    return [member.id for member in find_outliers(cluster, lambda term: count[term])]


def test_items_that_hold_no_term_of_the_clusters_own_are_strays() -> None:
    """A term that 10 other documents hold too connects nothing, be it the most frequent."""
    tanker, tax = (18, "brackwater tanker oil"), (3, "oil")
    assert outliers(tanker, tax, elsewhere={"oil": 10}) == ["a18", "a19", "a20"]
    assert outliers(tanker, tax, elsewhere={"oil": 1}) == []
    assert outliers(tanker, (3, "oil tanker"), elsewhere={"oil": 10}) == []


def test_a_cluster_most_of_which_is_strays_has_no_own_terms() -> None:
    """No item leaves a cluster of which over a quarter would."""
    assert outliers((18, "brackwater oil"), (7, "oil"), elsewhere={"oil": 30}) == []


def test_strays_leave_an_event_with_its_next_minute() -> None:
    """The articles that left are reported, and the event has a headline."""
    stream = DetectorStream()
    for i in range(10):
        stream.send(i / 100, f"oil topic{i}")
    stream.send_burst(20, start=2, step=0.1, words="brackwater viaduct tanker")
    detector, (event,) = stream.detector, open_events(stream)
    cluster = detector.clusters.by_key[event.cluster_key]
    for member in [m for m in detector.window if m.id in {"a1", "a2"}]:
        detector.clusters.remove_item(member)
        detector.clusters.add_item(cluster, member)
        detector.open_events.add_items(cluster, [member])
    assert {"a1", "a2"} <= set(event.items)

    stream.send(5, "brackwater viaduct tanker")
    stream.tick(6)

    assert not {"a1", "a2"} & set(event.items)
    assert event.title
