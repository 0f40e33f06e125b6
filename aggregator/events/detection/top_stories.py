"""The largest stories of the window, usual or not: a snapshot of the clusters for readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import log2

import msgspec

from aggregator.events.detection import expectation
from aggregator.events.detection.clustering import MIN_ITEMS_TO_MERGE, Cluster
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import DetectedEvent
from aggregator.events.detection.newsworthiness import MIN_PROBABILITY, measure, probability
from aggregator.events.detection.numbers import course_of
from aggregator.events.doubt import MAX_PEERS, is_one_story
from aggregator.time_units import HOUR_MS

MAX_TOP_STORIES = 60  # enough for the ten largest of a desk or a language


class TopStory(msgspec.Struct, frozen=True):
    """A story: its event, or what its cluster would be as one that fires now, with an item of each outlet.

    since_ms   first item since the last gap of a window
    story_id   its storyline; "" for none
    needed     items with which it fires; 0: it is an event, or usual
    """

    event: DetectedEvent
    since_ms: int
    is_event: bool
    needed: int
    story_id: str = ""


def story_size(voices: int, items: int) -> float:
    """Size of a story: its voices, and one for each doubling of the items."""
    return voices + log2(items) if items else 0.0


def top_stories(detector: BurstDetector) -> Iterator[TopStory]:
    """Yield the largest stories that look like news; the detector must not change meanwhile."""
    found: list[tuple[float, int]] = []
    for cluster in detector.clusters.by_key.values():
        if cluster.counted_items >= MIN_ITEMS_TO_MERGE:
            voices = {m.source for m in cluster.members.values() if m.is_counted}
            found.append((-story_size(len(voices), cluster.counted_items), cluster.key))
    for _, key in sorted(found)[:MAX_TOP_STORIES]:
        cluster = detector.clusters.by_key[key]
        if cluster.event_id is not None or _is_news(cluster, detector):
            event = detector.open_events.describe(cluster, detector.clock_ms)
            items = tuple(dict(zip(event.outlets, event.items, strict=False)).values())
            event = replace(event, items=items, cosines=(), times=course_of(event), claims={})
            since_ms = min(cluster.since_ms, event.first_seen_ms)
            yield TopStory(event, since_ms, cluster.event_id is not None, _needed(detector, cluster))


def _is_news(cluster: Cluster, detector: BurstDetector) -> bool:
    counted = [member for member in cluster.members.values() if member.is_counted]
    evidence = measure(counted, detector.window, detector.cold_start.rates)
    latest = {member.id: member.terms.keys() for member in counted[-MAX_PEERS:]}
    return probability(evidence) >= MIN_PROBABILITY and is_one_story(latest)


def _needed(detector: BurstDetector, cluster: Cluster) -> int:
    """The items with which a cluster fires that has half of them; 0 where it would be usual."""
    rule, needed = detector.rule, detector.items_needed(cluster) + 1
    if cluster.event_id is not None or not needed / 2 <= cluster.counted_items < needed:
        return 0
    expected = expectation.expected_items(cluster, detector.baseline, detector.clock_ms // HOUR_MS)
    return needed if expectation.exceeds_expectation(needed, expected, rule) else 0
