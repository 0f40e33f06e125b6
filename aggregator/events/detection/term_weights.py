"""Burst weights of terms: document counts of the window, compared with the baseline.

A weight is computed on first use and cached until the counts of its term or all weights change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aggregator.events.detection import expectation
from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline
from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.expectation import ColdStart
from aggregator.events.detection.model import BurstRule
from aggregator.time_units import HOUR_MS


class TermWeights:
    """Counts and weights of the terms in the window, as of the hour of the last ``refresh``.

    weigh                 weight of a term now (``Baseline.weight``)
    min_burst_documents   minimum number of documents of a bursting term: over half the rule's number
    """

    def __init__(self, rule: BurstRule, baseline: Baseline, cold_start: ColdStart) -> None:
        self._rule = rule
        self._baseline = baseline
        self._cold_start = cold_start
        self._window_counts: dict[str, int] = {}
        self._frequent: set[str] = set()  # terms that ``min_burst_documents`` hold
        # By frequent term, until its counts or all weights change; on the first day, until any count changes.
        self._is_bursting: dict[str, bool] = {}
        self._weight_cache = _WeightCache(self, self._window_counts, baseline, cold_start)
        self.hour = 0
        self.weigh = self._weight_cache.__getitem__
        self.min_burst_documents = rule.items // 2 + 1

    def add(self, member: WindowItem) -> None:
        """Count a document that entered the window."""
        self._cold_start.add(member)
        if self._cold_start.remaining:
            self._is_bursting.clear()  # every expectation depends on the number of documents
        counts, invalidate = self._window_counts, self._weight_cache.pop
        for term in (*member.terms, ALL_DOCUMENTS):
            count = counts[term] = counts.get(term, 0) + 1
            if count >= self.min_burst_documents:
                self._frequent.add(term)
                self._is_bursting.pop(term, None)
            invalidate(term, None)

    def remove(self, member: WindowItem) -> None:
        """Undo ``add`` for a document that left the window."""
        self._cold_start.remove(member)
        if self._cold_start.remaining:
            self._is_bursting.clear()
        for term in (*member.terms, ALL_DOCUMENTS):
            remaining = self._window_counts[term] - 1
            if remaining >= self.min_burst_documents - 1:
                self._is_bursting.pop(term, None)
                if remaining < self.min_burst_documents:
                    self._frequent.discard(term)
            if remaining:
                self._window_counts[term] = remaining
            else:
                del self._window_counts[term]
            self._weight_cache.pop(term, None)

    def invalidate(self, terms: Iterable[str]) -> None:
        """Drop what is cached of terms whose history changed."""
        for term in terms:
            self._weight_cache.pop(term, None)
            self._is_bursting.pop(term, None)

    def refresh(self, now_ms: int) -> None:
        """Set the time of the weights; cached ones are dropped if the baseline totals changed."""
        self.hour = now_ms // HOUR_MS
        self._cold_start.refresh(self.hour)
        if self._baseline.refresh_totals(self.hour):
            self._weight_cache.clear()
            self._is_bursting.clear()

    def window_count(self, term: str) -> int:
        """Return how many documents in the window hold the term."""
        return self._window_counts.get(term, 0)

    def expected(self, term: str) -> float:
        """Return how many documents usually hold the term in a window at this hour."""
        return max(self._baseline.expected(term, self.hour), self._cold_start.expected(term))

    def is_bursting(self, term: str) -> bool:
        """Whether at least ``min_burst_documents`` hold the term, clearly more than expected."""
        if term not in self._frequent:
            return False
        found = self._is_bursting.get(term)
        if found is None:
            found = self._is_bursting[term] = expectation.exceeds_expectation(
                self.window_count(term), self.expected(term), self._rule
            )
        return found

    def bursting_terms(self, terms: Mapping[str, int]) -> set[str]:
        """The bursting ones among the keys of ``terms``; an intersection finds frequent ones fast."""
        frequent = self._frequent & terms.keys()
        known = self._is_bursting
        return {term for term in frequent if (known[term] if term in known else self.is_bursting(term))}


class _WeightCache(dict[str, float]):
    """Cache as a dict subclass, not a function: 90 % of the lookups are hits, without a Python call."""

    def __init__(
        self,
        term_weights: TermWeights,
        window_counts: Mapping[str, int],
        baseline: Baseline,
        cold_start: ColdStart,
    ) -> None:
        self._term_weights, self._window_counts = term_weights, window_counts
        self._compute_weight, self._cold_start = baseline.weight, cold_start

    def __missing__(self, term: str) -> float:
        in_general = self._cold_start.expected(term) if self._cold_start.remaining else 0.0
        weight = self[term] = self._compute_weight(
            term, self._window_counts.get(term, 0), self._term_weights.hour, in_general
        )
        return weight
