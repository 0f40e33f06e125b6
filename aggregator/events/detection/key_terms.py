"""What is a story about? Its most distinctive terms, and the item that stands for it."""

from __future__ import annotations

import heapq
import math

from aggregator.events.detection import merge_evidence
from aggregator.events.detection.clustering import Story, TermWeigher, WindowItem
from aggregator.events.detection.term_weights import TermWeights

KEY_TERMS_PER_STORY = 8


def top_terms(story: Story, weigh: TermWeigher) -> list[str]:
    """Its most distinctive terms: frequent in it and bursting now."""
    weights = [(-weight * weigh(term), term) for term, weight in story.term_sums.items()]
    return [term for _, term in heapq.nsmallest(KEY_TERMS_PER_STORY, weights)]


def top_term(story: Story, weigh: TermWeigher) -> str:
    """The first of its distinctive terms."""
    chief, most = "", -1.0
    for term, weight in story.term_sums.items():
        heaviness = weight * weigh(term)
        if heaviness > most or (heaviness == most and term < chief):
            chief, most = term, heaviness
    return chief


def medoid(story: Story, weigh: TermWeigher) -> WindowItem:
    """The item nearest to the centroid (the older on a tie)."""
    squares = {term: weigh(term) ** 2 for term in story.term_sums}
    pulls = {term: squares[term] * weight for term, weight in story.term_sums.items()}

    def nearness(member: WindowItem) -> float:
        dot = length = 0.0
        for term, weight in member.terms.items():
            dot += weight * pulls[term]
            length += weight * weight * squares[term]
        return dot / math.sqrt(length) if length else 0.0

    return max(story.members.values(), key=lambda m: (nearness(m), -m.at_ms, -m.number))


class KeyTermCache:
    """Chief terms of stories, while no item comes or goes and no weight changes.

    What merges meanwhile must be forgotten (``forget``). The large stories of a busy stream have thousands of terms
    and are asked about by every story that grew.
    """

    def __init__(self, term_weights: TermWeights) -> None:
        self._term_weights = term_weights
        self._top_terms: dict[int, list[str]] = {}
        self._top_term: dict[int, str] = {}

    def top_terms(self, story: Story) -> list[str]:
        """The heaviest terms."""
        found = self._top_terms.get(story.key)
        if found is None:
            found = self._top_terms[story.key] = top_terms(story, self._term_weights.weigh)
        return found

    def top_term(self, story: Story) -> str:
        """The heaviest of all, which takes less time to find than several."""
        found = self._top_term.get(story.key)
        if found is None:
            found = self._top_term[story.key] = top_term(story, self._term_weights.weigh)
        return found

    def support_merge(self, a: Story, b: Story) -> bool:
        """Whether what both are about bears out that they are one."""
        return merge_evidence.terms_support_merge(
            self.top_terms(a), self.top_terms(b), self._term_weights.expected
        )

    def invalidate(self, story: Story) -> None:
        """It has other items now."""
        self._top_terms.pop(story.key, None)
        self._top_term.pop(story.key, None)
