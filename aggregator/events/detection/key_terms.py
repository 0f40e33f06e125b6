"""Key terms of a story (its most distinctive terms) and the item whose headline describes it."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from operator import mul

from aggregator.events.detection import merge_evidence
from aggregator.events.detection.clustering import Story, TermWeigher, WindowItem
from aggregator.events.detection.headline_choice import Candidate, choose_headline
from aggregator.events.detection.term_weights import TermWeights

KEY_TERMS_PER_STORY = 8


def top_terms(story: Story, weigh: TermWeigher) -> list[str]:
    """Return the ``KEY_TERMS_PER_STORY`` terms with the largest sum times weight: frequent and bursting."""
    return heaviest_terms(story.term_sums, weigh)


def heaviest_terms(sums: Mapping[str, int], weigh: TermWeigher) -> list[str]:
    """Return the ``KEY_TERMS_PER_STORY`` terms with the largest sum times weight; of equal ones the first."""
    weights = list(map(mul, sums.values(), map(weigh, sums)))
    # Tuples for the heaviest terms only: a third of the time for a story of 500 terms.
    least = heapq.nlargest(KEY_TERMS_PER_STORY, weights)[-1] if weights else 0.0
    heaviest = [(-weight, term) for weight, term in zip(weights, sums, strict=True) if weight >= least]
    return [term for _, term in sorted(heaviest)[:KEY_TERMS_PER_STORY]]


def top_term(story: Story, weigh: TermWeigher) -> str:
    """Return the first of ``top_terms``; "" for a story without terms."""
    weights = list(map(mul, story.term_sums.values(), map(weigh, story.term_sums)))
    if not weights:
        return ""
    largest = max(weights)
    return min(term for weight, term in zip(weights, story.term_sums, strict=True) if weight == largest)


def typical_headline(story: Story, weigh: TermWeigher) -> WindowItem:
    """Return the item whose headline describes the story best (``headline_choice.py``)."""
    members = list(story.members.values())
    weights = dict(zip(story.term_sums, map(weigh, story.term_sums), strict=True))
    candidates = [
        Candidate(m.desk_prefix + m.title, m.at_ms, {t: w * weights[t] for t, w in m.terms.items()})
        for m in members
    ]
    return members[choose_headline(candidates)]


class KeyTermCache:
    """Cache of key terms for one round of merging, in which no weight changes.

    A story that absorbs another must be invalidated. Large stories have thousands of terms and are compared
    with every story that grew.
    """

    def __init__(self, term_weights: TermWeights) -> None:
        self._term_weights = term_weights
        self._top_terms: dict[int, list[str]] = {}
        self._top_term: dict[int, str] = {}
        self._top_bursting_term: dict[int, str] = {}

    def top_terms(self, story: Story) -> list[str]:
        """See the function ``top_terms``."""
        found = self._top_terms.get(story.key)
        if found is None:
            found = self._top_terms[story.key] = top_terms(story, self._term_weights.weigh)
        return found

    def top_term(self, story: Story) -> str:
        """See the function ``top_term``, which is faster than ``top_terms``."""
        if terms := self._top_terms.get(story.key):
            return terms[0]
        found = self._top_term.get(story.key)
        if found is None:
            found = self._top_term[story.key] = top_term(story, self._term_weights.weigh)
        return found

    def top_bursting_term(self, story: Story) -> str:
        """Return the first of ``top_terms`` among those that burst; "" if none does.

        ``top_term`` if that bursts. Costs a third of it: few of thousands of terms are weighed.
        """
        found = self._top_bursting_term.get(story.key)
        if found is None:
            weigh = self._term_weights.weigh
            bursting = self._term_weights.bursting_terms(story.term_sums)
            weights = [(-story.term_sums[term] * weigh(term), term) for term in bursting]
            found = self._top_bursting_term[story.key] = min(weights)[1] if weights else ""
        return found

    def support_merge(self, a: Story, b: Story) -> bool:
        """Whether the key terms of both stories support a merge."""
        return merge_evidence.terms_support_merge(
            self.top_terms(a), self.top_terms(b), self._term_weights.expected
        )

    def agree(self, a: Story, b: Story) -> bool:
        """Whether half of the key terms of both stories are the same."""
        return 2 * len(set(self.top_terms(a)) & set(self.top_terms(b))) >= KEY_TERMS_PER_STORY

    def invalidate(self, story: Story) -> None:
        """Forget the terms of a story whose items changed."""
        self._top_terms.pop(story.key, None)
        self._top_term.pop(story.key, None)
        self._top_bursting_term.pop(story.key, None)
