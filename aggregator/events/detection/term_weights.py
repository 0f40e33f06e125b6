"""What does each term say now? Counts of the window beside what is usual, and the weight that follows from both.

A weight is worked out when it is asked for, and kept until the term's counts change or all weights do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from aggregator.events.detection import expectation
from aggregator.events.detection.baseline import EVERY, Background
from aggregator.events.detection.model import HOUR_MS, BurstRule


class Terms:
    """Terms of the items in the window, at the time of the last ``freeze``.

    weigh        what a term says about a story now (``Background.weight``)
    least_burst  documents in the window that a bursting term has at least: over half the rule's number
    """

    def __init__(self, rule: BurstRule, background: Background) -> None:
        self._rule = rule
        self._background = background
        self._seen: dict[str, int] = {}
        self._weights = _Weights(self, self._seen, background.weight)
        self.hour = 0
        self.weigh = self._weights.__getitem__
        self.least_burst = rule.items // 2 + 1

    def come(self, terms: Iterable[str]) -> None:
        """A document that counts has come into the window."""
        seen, forget = self._seen, self._weights.pop
        for term in (*terms, EVERY):
            seen[term] = seen.get(term, 0) + 1
            forget(term, None)

    def go(self, terms: Iterable[str]) -> None:
        """One that counted has left it."""
        for term in (*terms, EVERY):
            left = self._seen[term] - 1
            if left:
                self._seen[term] = left
            else:
                del self._seen[term]
            self._weights.pop(term, None)

    def freeze(self, now_ms: int) -> None:
        """Weights are those of ``now_ms`` from here on; those of before are kept while they still stand."""
        self.hour = now_ms // HOUR_MS
        if self._background.freeze(self.hour):
            self._weights.clear()

    def seen(self, term: str) -> int:
        """Documents in the window that hold it."""
        return self._seen.get(term, 0)

    def usual(self, term: str) -> float:
        """Documents that hold it in a usual window at this hour."""
        return self._background.expected(term, self.hour)

    def bursts(self, term: str) -> bool:
        """Whether ``least_burst`` documents hold it, clearly more than usual."""
        seen = self.seen(term)
        return seen >= self.least_burst and expectation.is_clearly_more(seen, self.usual(term), self._rule)

    def bursting(self, terms: Iterable[str]) -> list[str]:
        """Those that burst: of thousands few are in enough documents."""
        seen = self._seen
        return [t for t in terms if seen.get(t, 0) >= self.least_burst and self.bursts(t)]


class _Weights(dict[str, float]):
    """A mapping and no function: nine of ten questions are answered without a call."""

    def __init__(
        self, terms: Terms, seen: Mapping[str, int], weight: Callable[[str, int, int], float]
    ) -> None:
        self._of, self._seen, self._weight = terms, seen, weight

    def __missing__(self, term: str) -> float:
        weight = self[term] = self._weight(term, self._seen.get(term, 0), self._of.hour)
        return weight
