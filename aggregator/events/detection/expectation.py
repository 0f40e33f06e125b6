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

from aggregator.events.detection.baseline import EVERY, PRIOR, Background
from aggregator.events.detection.clustering import FULL_WEIGHT, Story
from aggregator.events.detection.model import BurstRule

# How many times the usual number a story needs (divided by the rule's sensitivity).
CLEARLY_MORE = 4.0
# Expectation of a story: that of its terms, each by the cube of its share of the items, so that the
# frame that all items have in common decides and not the names that fill it.
SHARE_POWER = 3


def exceeded(
    story: Story, rule: BurstRule, background: Background, seen: Callable[[str], int], hour: int
) -> float | None:
    """How many items are usual, when the story has more than the rule asks for and clearly more than that; else None.

    ``seen``: items of the window that hold a term.
    """
    if story.firing <= rule.items or not has_enough_sources(story, rule):
        return None
    usual = expected(story, background, hour)
    if not is_clearly_more(story.firing, usual, rule):
        return None  # most looks end here, before the volume is asked for
    usual *= load(story, background, seen, hour)
    return usual if is_clearly_more(story.firing, usual, rule) else None


def expected(story: Story, background: Background, hour: int) -> float:
    """Items per window that are usual for what this story's items have in common."""
    weighted = total = 0.0
    for term, weight in story.sums.items():
        share = (weight / (FULL_WEIGHT * len(story.members))) ** SHARE_POWER
        weighted += share * background.expected(term, hour)
        total += share
    return weighted / total if total else 0.0


def load(story: Story, background: Background, seen: Callable[[str], int], hour: int) -> float:
    """How many times its usual volume the rest of the stream has; 1.0 at least.

    The rest: the items of the window without the term that most of the story's items share. ``seen``: items
    of the window that hold a term.
    """
    frame = max(story.sums, key=lambda t: (story.sums[t], t))
    others = seen(EVERY) - seen(frame)
    usual = background.expected(EVERY, hour) - background.expected(frame, hour)
    return max(1.0, (others + PRIOR) / (max(0.0, usual) + PRIOR))


def is_clearly_more(seen: int, usual: float, rule: BurstRule) -> bool:
    """Whether ``seen`` items are no routine. Example: 16 items, 4.0 usual, sensitivity 1: they are not."""
    return seen * rule.sensitivity >= CLEARLY_MORE * usual


def has_enough_sources(story: Story, rule: BurstRule) -> bool:
    """Whether the items that count come from the number of sources that the rule asks for."""
    return len({m.source for m in story.members.values() if m.fires}) >= rule.min_sources
