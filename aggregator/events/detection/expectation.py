"""Expectation of a story: the items usual for it at this time of the week, and whether it exceeds them.

The expectation is scaled by the present volume of the stream: when the whole stream is ten times as fast (a
backlog is delivered, a source was added, a market opens), ten times the usual number is routine for a story.

On a timeline (sensitivity 1: four times the expectation)::

    every day  at this hour  similar items, so that 4.0 are expected in 4 h
    today      09:20         15 of them within 4 h: "more than 15" is not reached
    today      09:21         16 = 4 x 4.0: clearly more -> fires
    today      09:21 instead the rest of the stream has 1.1 times its usual volume: 4.4 expected, no event
    last week  at this hour  40 items in 4 h, and none since: about half of them are expected today
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aggregator.events.detection.baseline import ALL_DOCUMENTS, SMOOTHING_DOCUMENTS, Baseline
from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, Story
from aggregator.events.detection.cold_start import ColdStart
from aggregator.events.detection.model import BurstRule

# Multiple of its expectation that a story needs to fire (divided by the rule's sensitivity).
EXCESS_RATIO = 4.0
# The expectation of a story is the mean of those of its terms, weighted by the cube of a term's share of the
# items: the template that all items have in common decides, not the names that fill it.
SHARE_POWER = 3
# A term that is usual nowhere decides alone when nearly all items hold it: "quake" next to a country.
RARE_TERM_DOCUMENTS = 0.25
RARE_TERM_SHARE = 0.8
# A topic of which more than this number of items is usual varies by seasons (results, auctions): each further
# usual item requires twice the excess.
REGULAR_TOPIC_ITEMS = 4.0


def expected_if_exceeded(
    story: Story,
    rule: BurstRule,
    baseline: Baseline,
    window_count: Callable[[str], int],
    hour: int,
    cold_start: ColdStart,
    family_of: Mapping[str, str],
) -> float | None:
    """Return the expected number of items if the story exceeds both the rule and that number, else None.

    ``window_count``: documents in the window that hold a term; ``family_of``: see ``SourceFamilies``.
    """
    if story.counted_items <= rule.items:
        return None
    if rule.min_sources > 1 and count_sources(story, family_of) < rule.min_sources:
        return None
    expected = expected_items(story, baseline, hour)
    if not exceeds_expectation(story.counted_items, expected, rule):
        return None  # most calls end here, without the cost of the volume
    expected *= volume_ratio(story, baseline, window_count, hour)
    required = expected + max(0.0, expected - REGULAR_TOPIC_ITEMS)
    if not exceeds_expectation(story.counted_items, required, rule):
        return None
    on_first_day = cold_start.expected_items(story, expected)
    return expected if exceeds_expectation(story.counted_items, on_first_day, rule) else None


def expected_items(story: Story, baseline: Baseline, hour: int) -> float:
    """Return the items per window that are usual for the common terms of the story, at usual volume.

    The mean over its terms, or the expectation of a rare term that nearly all items hold.
    """
    weighted = total = 0.0
    rarest = RARE_TERM_DOCUMENTS
    largest_sum = MAX_TERM_WEIGHT * len(story.members)
    expectations = baseline.expectations(hour)
    for term, weight in story.term_sums.items():
        share = weight / largest_sum
        expected = expectations[term]
        power = share**SHARE_POWER
        weighted += power * expected
        total += power
        if share >= RARE_TERM_SHARE and expected < rarest:
            rarest = expected
    if rarest < RARE_TERM_DOCUMENTS:
        return rarest
    return weighted / total if total else 0.0


def volume_ratio(story: Story, baseline: Baseline, window_count: Callable[[str], int], hour: int) -> float:
    """Return the volume of the rest of the stream as a multiple of its usual volume, at least 1.0.

    The rest is the documents of the window without the story's most common term.
    """
    largest = max(story.term_sums.values())
    common_term = max([term for term, total in story.term_sums.items() if total == largest])
    observed = window_count(ALL_DOCUMENTS) - window_count(common_term)
    expected = baseline.expected(ALL_DOCUMENTS, hour) - baseline.expected(common_term, hour)
    return max(1.0, (observed + SMOOTHING_DOCUMENTS) / (max(0.0, expected) + SMOOTHING_DOCUMENTS))


def exceeds_expectation(observed: int, expected: float, rule: BurstRule) -> bool:
    """Whether ``observed`` is clearly more than ``expected``: 16 of 4.0 are, at sensitivity 1."""
    return observed * rule.sensitivity >= EXCESS_RATIO * expected


def count_sources(story: Story, family_of: Mapping[str, str]) -> int:
    """Number of sources of the counted items, a family counting as one."""
    return len({family_of.get(m.source, m.source) for m in story.members.values() if m.is_counted})
