"""What is a story about? Its most distinctive terms, and the item that stands for it."""

from __future__ import annotations

import heapq
import math

from aggregator.events.detection import merge_evidence
from aggregator.events.detection.clustering import Member, Story, Weigh
from aggregator.events.detection.term_weights import Terms

HEAVIEST = 8


def heaviest(story: Story, weigh: Weigh) -> list[str]:
    """Its most distinctive terms: frequent in it and bursting now."""
    weights = [(-weight * weigh(term), term) for term, weight in story.sums.items()]
    return [term for _, term in heapq.nsmallest(HEAVIEST, weights)]


def first(story: Story, weigh: Weigh) -> str:
    """The first of its distinctive terms."""
    chief, most = "", -1.0
    for term, weight in story.sums.items():
        heaviness = weight * weigh(term)
        if heaviness > most or (heaviness == most and term < chief):
            chief, most = term, heaviness
    return chief


def medoid(story: Story, weigh: Weigh) -> Member:
    """The item nearest to the centroid (the older on a tie)."""
    squares = {term: weigh(term) ** 2 for term in story.sums}
    pulls = {term: squares[term] * weight for term, weight in story.sums.items()}

    def nearness(member: Member) -> float:
        dot = length = 0.0
        for term, weight in member.terms.items():
            dot += weight * pulls[term]
            length += weight * weight * squares[term]
        return dot / math.sqrt(length) if length else 0.0

    return max(story.members.values(), key=lambda m: (nearness(m), -m.at_ms, -m.number))


class Chiefs:
    """Chief terms of stories, while no item comes or goes and no weight changes.

    What merges meanwhile must be forgotten (``forget``). The large stories of a busy stream have thousands of terms
    and are asked about by every story that grew.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._heaviest: dict[int, list[str]] = {}
        self._first: dict[int, str] = {}

    def heaviest(self, story: Story) -> list[str]:
        """The heaviest terms."""
        found = self._heaviest.get(story.key)
        if found is None:
            found = self._heaviest[story.key] = heaviest(story, self._terms.weigh)
        return found

    def first(self, story: Story) -> str:
        """The heaviest of all, which takes less time to find than several."""
        found = self._first.get(story.key)
        if found is None:
            found = self._first[story.key] = first(story, self._terms.weigh)
        return found

    def agree(self, a: Story, b: Story) -> bool:
        """Whether what both are about bears out that they are one."""
        return merge_evidence.agree(self.heaviest(a), self.heaviest(b), self._terms.usual)

    def forget(self, story: Story) -> None:
        """It has other items now."""
        self._heaviest.pop(story.key, None)
        self._first.pop(story.key, None)
