"""Similarity of articles by their stored term weights, and the ranking of related articles. Pure.

Similarity is the cosine of the top TF-IDF terms (both vectors have L2 norm 1). The fingerprint finds the
candidates; it is too coarse to order them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aggregator.dedup.verdict import Candidate
from aggregator.domain import RelatedItem, WeightedTerms


def cosine(a: WeightedTerms, b: WeightedTerms) -> float:
    """Cosine of two sparse unit vectors, 0..1; 0 when either is empty."""
    return cosine_to(a)(b)


def cosine_to(a: WeightedTerms) -> Callable[[WeightedTerms], float]:
    """Return the function ``b -> cosine(a, b)``; faster than ``cosine`` for many ``b``."""
    weights = dict(a)

    def cosine_with(b: WeightedTerms) -> float:
        return min(1.0, sum([weight * weights[term] for term, weight in b if term in weights], 0.0))

    return cosine_with


def rank(
    candidates: Iterable[Candidate],
    *,
    exclude_group: int | None,
    limit: int,
) -> tuple[RelatedItem, ...]:
    """Return at most ``limit`` candidates, most similar first; equally similar ones by arrival, latest first.

    Of each duplicate group only the first in this order is kept; none of group ``exclude_group`` (the
    article's own).
    """
    scored = [
        (round(candidate.similarity, 3), candidate)
        for candidate in candidates
        if candidate.canonical[1] != exclude_group
    ]
    scored.sort(key=lambda pair: (-pair[0], -pair[1].record.number))
    groups: set[int] = set()
    items: list[RelatedItem] = []
    for similarity, candidate in scored:
        if len(items) == limit:
            break
        if candidate.canonical[1] in groups:
            continue
        groups.add(candidate.canonical[1])
        items.append(_related_item(candidate, similarity))
    return tuple(items)


def _related_item(candidate: Candidate, similarity: float) -> RelatedItem:
    record = candidate.record
    return RelatedItem(
        id=record.id,
        title=record.title,
        url=record.url,
        source=record.source,
        published_at_ms=record.published_at_ms,
        distance=candidate.distance,
        similarity=similarity,
    )
