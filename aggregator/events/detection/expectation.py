"""How many items of a story are usual at this time of the week, and is what is seen clearly more?

Usual is measured at the present volume of the stream: when all of it comes ten times as fast (a backlog is
delivered, a new source was added, a market opens), ten times the usual number is routine for each story.

On a timeline (sensitivity 1: four times the usual number)::

    every day  at this hour  so many items of a kind that 4.0 are usual in 4 h
    today      09:20         15 of them within 4 h: "more than 15" is not reached
    today      09:21         16 = 4 x 4.0: clearly more -> fires
    today      09:21 instead the rest of the stream runs at 1.1 times its usual volume: 4.4 are usual now, silence
    last week  at this hour  40 items in 4 h, and none since: about half of it is usual today
"""

from __future__ import annotations

from collections.abc import Callable

from aggregator.events.detection.baseline import ALL_DOCUMENTS, SMOOTHING_DOCUMENTS, Baseline
from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, Story
from aggregator.events.detection.model import BurstRule

# How many times the usual number a story needs (divided by the rule's sensitivity).
EXCESS_RATIO = 4.0
# Expectation of a story: that of its terms, each by the cube of its share of the items, so that the
# frame that all items have in common decides and not the names that fill it.
SHARE_POWER = 3


def expected_if_exceeded(
    story: Story, rule: BurstRule, baseline: Baseline, window_count: Callable[[str], int], hour: int
) -> float | None:
    """How many items are usual, when the story has more than the rule asks for and clearly more than that; else None.

    ``seen``: items of the window that hold a term.
    """
    if story.counted_items <= rule.items or not has_enough_sources(story, rule):
        return None
    usual = expected_items(story, baseline, hour)
    if not exceeds_expectation(story.counted_items, usual, rule):
        return None  # most looks end here, before the volume is asked for
    usual *= volume_ratio(story, baseline, window_count, hour)
    return usual if exceeds_expectation(story.counted_items, usual, rule) else None


def expected_items(story: Story, baseline: Baseline, hour: int) -> float:
    """Items per window that are usual for what this story's items have in common."""
    weighted = total = 0.0
    for term, weight in story.term_sums.items():
        share = (weight / (MAX_TERM_WEIGHT * len(story.members))) ** SHARE_POWER
        weighted += share * baseline.expected(term, hour)
        total += share
    return weighted / total if total else 0.0


def volume_ratio(story: Story, baseline: Baseline, window_count: Callable[[str], int], hour: int) -> float:
    """How many times its usual volume the rest of the stream has; 1.0 at least.

    The rest: the items of the window without the term that most of the story's items share. ``seen``: items
    of the window that hold a term.
    """
    frame = max(story.term_sums, key=lambda t: (story.term_sums[t], t))
    others = window_count(ALL_DOCUMENTS) - window_count(frame)
    usual = baseline.expected(ALL_DOCUMENTS, hour) - baseline.expected(frame, hour)
    return max(1.0, (others + SMOOTHING_DOCUMENTS) / (max(0.0, usual) + SMOOTHING_DOCUMENTS))


def exceeds_expectation(observed: int, expected: float, rule: BurstRule) -> bool:
    """Whether ``seen`` items are no routine. Example: 16 items, 4.0 usual, sensitivity 1: they are not."""
    return observed * rule.sensitivity >= EXCESS_RATIO * expected


def has_enough_sources(story: Story, rule: BurstRule) -> bool:
    """Whether the items that count come from the number of sources that the rule asks for."""
    return len({m.source for m in story.members.values() if m.is_counted}) >= rule.min_sources
