"""Result type of the pair scorers: pairs of articles with a score each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aggregator.domain import Article
from aggregator_archive.arrays import Floats, Rows


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPairs:
    """Pairs of rows ``a`` < ``b`` (n,) with their ``score`` (n,).

    features  (n, k) input of a pair classifier, whose probability then replaces the score; else None
    """

    a: Rows
    b: Rows
    score: Floats
    features: Floats | None = None


PairScorer = Callable[[Sequence[Article]], ScoredPairs]
