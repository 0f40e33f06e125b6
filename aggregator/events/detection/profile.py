"""Profile of a story: its common terms as a unit vector that recognizes the same story days later.

A profile is a list of (term, weight): the sum of the term over the items times its idf, the heaviest twenty,
scaled to norm 1. Unlike the weights used for clustering (``baseline.py``) it does not depend on the time, so
that today's story can be compared with one of last week whose items have expired.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from aggregator.events.detection.clustering import Story, TermWeigher

PROFILE_TERMS = 20
# Cosine of two profiles from which an editor's instruction for one event also applies to the other.
SAME_STORY_COSINE = 0.5

Profile = Iterable[tuple[str, float]]


def build_profile(story: Story, idf: TermWeigher) -> list[tuple[str, float]]:
    """Return the profile of a story, the heaviest term first; empty if all weights are 0."""
    weights = {term: count * idf(term) for term, count in story.term_sums.items()}
    heaviest = sorted(weights, key=lambda term: (-weights[term], term))[:PROFILE_TERMS]
    length = math.sqrt(sum(weights[term] ** 2 for term in heaviest))
    return [(term, round(weights[term] / length, 4)) for term in heaviest] if length else []


def similarity(profile: Profile, terms: Mapping[str, int], idf: TermWeigher) -> float:
    """Return the cosine of one item's ``terms`` (term -> weight) to a profile, 0..1."""
    weights = {term: weight * idf(term) for term, weight in terms.items()}
    length = math.sqrt(sum(weight**2 for weight in weights.values()))
    return sum(weights.get(term, 0.0) * weight for term, weight in profile) / length if length else 0.0


def is_same_story(a: Profile, b: Profile) -> bool:
    """Whether two profiles describe the same story. False for an empty one."""
    weights = dict(a)
    return sum(weights.get(term, 0.0) * weight for term, weight in b) >= SAME_STORY_COSINE
