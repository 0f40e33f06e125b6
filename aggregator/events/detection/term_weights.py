"""What does each term say now? Counts of the window beside what is usual, and the weight that follows from both.

A weight is worked out when it is asked for, and kept until the term's counts change or all weights do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from aggregator.events.detection import expectation
from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline
from aggregator.events.detection.model import BurstRule
from aggregator.time_units import HOUR_MS


class TermWeights:
    """Terms of the items in the window, at the time of the last ``freeze``.

    weigh        what a term says about a story now (``Background.weight``)
    least_burst  documents in the window that a bursting term has at least: over half the rule's number
    """

    def __init__(self, rule: BurstRule, baseline: Baseline) -> None:
        self._rule = rule
        self._baseline = baseline
        self._window_counts: dict[str, int] = {}
        self._weight_cache = _WeightCache(self, self._window_counts, baseline.weight)
        self.hour = 0
        self.weigh = self._weight_cache.__getitem__
        self.min_burst_documents = rule.items // 2 + 1

    def add(self, terms: Iterable[str]) -> None:
        """A document that counts has come into the window."""
        seen, forget = self._window_counts, self._weight_cache.pop
        for term in (*terms, ALL_DOCUMENTS):
            seen[term] = seen.get(term, 0) + 1
            forget(term, None)

    def remove(self, terms: Iterable[str]) -> None:
        """One that counted has left it."""
        for term in (*terms, ALL_DOCUMENTS):
            left = self._window_counts[term] - 1
            if left:
                self._window_counts[term] = left
            else:
                del self._window_counts[term]
            self._weight_cache.pop(term, None)

    def refresh(self, now_ms: int) -> None:
        """Weights are those of ``now_ms`` from here on; those of before are kept while they still stand."""
        self.hour = now_ms // HOUR_MS
        if self._baseline.refresh_totals(self.hour):
            self._weight_cache.clear()

    def window_count(self, term: str) -> int:
        """Documents in the window that hold it."""
        return self._window_counts.get(term, 0)

    def expected(self, term: str) -> float:
        """Documents that hold it in a usual window at this hour."""
        return self._baseline.expected(term, self.hour)

    def is_bursting(self, term: str) -> bool:
        """Whether ``least_burst`` documents hold it, clearly more than usual."""
        seen = self.window_count(term)
        return seen >= self.min_burst_documents and expectation.exceeds_expectation(
            seen, self.expected(term), self._rule
        )

    def bursting_terms(self, terms: Iterable[str]) -> list[str]:
        """Those that burst: of thousands few are in enough documents."""
        seen = self._window_counts
        return [t for t in terms if seen.get(t, 0) >= self.min_burst_documents and self.is_bursting(t)]


class _WeightCache(dict[str, float]):
    """A mapping and no function: nine of ten questions are answered without a call."""

    def __init__(
        self,
        term_weights: TermWeights,
        window_counts: Mapping[str, int],
        weight: Callable[[str, int, int], float],
    ) -> None:
        self._term_weights, self._window_counts, self._compute_weight = term_weights, window_counts, weight

    def __missing__(self, term: str) -> float:
        weight = self[term] = self._compute_weight(
            term, self._window_counts.get(term, 0), self._term_weights.hour
        )
        return weight
