"""Developments: new facts in a story that continues after its alert, whether its event is open or has closed.

An article belongs to a story by its similarity to what the event is about. A development is a term in several
headlines of now, of several voices where they are counted, which neither the story nor the stream explains.
"""

from __future__ import annotations

from collections import defaultdict
from math import lgamma, log

import msgspec

from aggregator.events.detection.baseline import ALL_DOCUMENTS
from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.expectation import TermWeights
from aggregator.events.detection.model import CHANCE_ITEMS
from aggregator.events.detection.voices import MIN_VOICES

MAX_CHANCE = 1e-3  # probability of as many headlines with a term, up to which it is new
Articles = list[WindowItem]


class StoryMemory(msgspec.Struct, array_like=True):
    """What an event remembers of its story; ``at_ms``: of the alert or the last development.

    recent  its articles in the window; ``past``: of ``past_items`` older ones, those that hold each term
    """

    at_ms: int
    recent: Articles
    past: dict[str, int] = {}
    past_items: int = 0

    def add(self, member: WindowItem, oldest_ms: int) -> StoryMemory:
        """Add an article; those before ``oldest_ms`` are past."""
        for old in [m for m in self.recent if m.at_ms < oldest_ms]:
            self.past_items += 1
            self.past |= {term: self.past.get(term, 0) + 1 for term in old.headline_terms}
        self.recent = [m for m in self.recent if m.at_ms >= oldest_ms] + [member]
        return self

    def new_terms(self, weights: TermWeights, has_voices: bool) -> dict[str, Articles]:
        """The recent articles with each new term, most first; ``has_voices``: else items are counted."""
        found, holders, documents = {}, defaultdict[str, Articles](list), weights.expected(ALL_DOCUMENTS)
        for member in self.recent:
            for term in member.headline_terms:
                holders[term].append(member)
        for term, members in sorted(holders.items(), key=lambda entry: (-len(entry[1]), entry[0])):
            count = len({frozenset(member.headline_terms) for member in members})
            if has_voices:
                voices = len({member.source for member in members})
                count = min(count, voices) if voices >= MIN_VOICES else 0
            share = (self.past.get(term, 0) + 0.5) / (self.past_items + 5)
            usual = len(self.recent) * max(share, weights.expected(term) / max(1.0, documents))
            chance = count * log(usual) - usual - lgamma(count + 1)  # by a Poisson distribution
            if count >= CHANCE_ITEMS and count > usual and chance <= log(MAX_CHANCE):
                found[term] = members
        return found
