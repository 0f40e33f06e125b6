"""Is this the same matter as one seen before? What the items of a story have in common, comparable over days.

A profile is (term, weight): the share of the items that hold a term times its idf, the heaviest twenty,
scaled to length 1. Unlike the weights that link items (``background.py``) it has no part that depends on
the moment, so that today's burst can be compared with one of last week, whose items are forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from aggregator.events.detection.clustering import Story, TermWeigher

PROFILE_TERMS = 20
# Cosine of two profiles at which editors mean both when they speak of one.
SAME_STORY_COSINE = 0.5

Profile = Iterable[tuple[str, float]]


def build_profile(story: Story, idf: TermWeigher) -> list[tuple[str, float]]:
    """Profile of a story that has items, the heaviest term first."""
    weights = {term: count * idf(term) for term, count in story.term_sums.items()}
    heaviest = sorted(weights, key=lambda term: (-weights[term], term))[:PROFILE_TERMS]
    length = math.sqrt(sum(weights[term] ** 2 for term in heaviest))
    return [(term, round(weights[term] / length, 4)) for term in heaviest] if length else []


def is_same_story(a: Profile, b: Profile) -> bool:
    """Whether two profiles are of one matter. False for an empty one."""
    weights = dict(a)
    return sum(weights.get(term, 0.0) * weight for term, weight in b) >= SAME_STORY_COSINE
