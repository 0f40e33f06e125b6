"""Coherence: stories that hold two topics are divided, and items that joined by drift leave.

An item joins by its similarity to the centroid at that moment. One word can connect two topics: headlines
about one bank join the story of another bank while "bank" is most of what both hold. What would not be
merged is not kept together: a story is divided when the items with one of its key terms and the items
without it have no key terms in common but the connecting one (``merge_evidence.py``)::

    story of 130 items   key terms "bank" (97 %), "clothier" (48 %), "governor" (22 %)
    with "clothier"      bank, clothier, offer, suit
    without it           bank, governor, rates, pound       only "bank" in common: two stories
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

from aggregator.events.detection.clustering import Story, TermWeigher, WindowItem
from aggregator.events.detection.key_terms import KEY_TERMS_PER_STORY
from aggregator.events.detection.merge_evidence import terms_support_merge

# A part below this share of the items is a side of the topic, not a topic.
MIN_PART_ITEMS = 5
MIN_PART_SHARE = 0.15
# Fewer items do not show two topics.
MIN_STORY_ITEMS = 16
# Cosine of the two parts without the connecting term up to which they are two topics.
MAX_PARTS_COSINE = 0.1


def find_division(
    story: Story, top_terms: Sequence[str], weigh: TermWeigher, expected: Callable[[str], float]
) -> list[WindowItem] | None:
    """Return the smaller of the two topics of ``story``, in order of joining; None if it has one topic.

    ``top_terms``: its key terms; ``expected``: documents per window that usually hold a term.
    """
    members = list(story.members.values())
    min_items = max(MIN_PART_ITEMS, MIN_PART_SHARE * len(members))
    for term in top_terms:
        inside = [member for member in members if term in member.terms]
        if not min_items <= len(inside) <= len(members) - min_items:
            continue
        outside = [member for member in members if term not in member.terms]
        part = min(outside, inside, key=len)
        sums = _term_sums(part)
        rest = {t: total - sums.get(t, 0) for t, total in story.term_sums.items() if total != sums.get(t)}
        if _are_two_topics(_weighted(sums, weigh), _weighted(rest, weigh), expected):
            return part
    return None


def _term_sums(members: Sequence[WindowItem]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for member in members:
        for term, weight in member.terms.items():
            sums[term] = sums.get(term, 0) + weight
    return sums


def _weighted(sums: dict[str, int], weigh: TermWeigher) -> dict[str, float]:
    return {term: weight * weigh(term) for term, weight in sums.items()}


def _are_two_topics(a: dict[str, float], b: dict[str, float], expected: Callable[[str], float]) -> bool:
    top_a, top_b = _heaviest(a), _heaviest(b)
    if terms_support_merge(top_a, top_b, expected):
        return False
    connecting = {term for term in top_a if term in set(top_b)}
    return _cosine(a, b, connecting) <= MAX_PARTS_COSINE


def _heaviest(weights: dict[str, float]) -> list[str]:
    heaviest = heapq.nsmallest(KEY_TERMS_PER_STORY, [(-weight, term) for term, weight in weights.items()])
    return [term for _, term in heaviest]


def _cosine(a: dict[str, float], b: dict[str, float], without: set[str]) -> float:
    squares_a = sum(w * w for t, w in a.items() if t not in without)
    squares_b = sum(w * w for t, w in b.items() if t not in without)
    dot = sum(w * b[t] for t, w in a.items() if t in b and t not in without)
    return dot / math.sqrt(squares_a * squares_b) if dot else 0.0
