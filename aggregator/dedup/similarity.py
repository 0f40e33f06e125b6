"""What else is about this? Ranking of neighbours by their stored term weights, pure.

Similarity is the cosine of the heaviest TF-IDF terms (both vectors have L2 norm 1). The fingerprint
proposed the neighbours; it is too coarse to order them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aggregator.dedup.verdict import Candidate
from aggregator.domain import RelatedItem

WeightedTerms = Sequence[tuple[str, float]]


def cosine(a: WeightedTerms, b: WeightedTerms) -> float:
    """Cosine of two sparse unit vectors, 0..1; 0 when either is empty."""
    return cosine_to(a)(b)


def cosine_to(a: WeightedTerms) -> Callable[[WeightedTerms], float]:
    """The cosine with one vector, of many others in turn."""
    weights = dict(a)

    def of(b: WeightedTerms) -> float:
        return min(1.0, sum([weight * weights[term] for term, weight in b if term in weights], 0.0))

    return of


def rank(
    candidates: Iterable[Candidate],
    *,
    exclude_group: int | None,
    limit: int,
) -> tuple[RelatedItem, ...]:
    """The candidates that are other articles, most similar first.

    Copies of one another appear once; those of group ``without_group`` (the article's own copies)
    not at all. Ties go to the more recent.
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
    """A candidate as it is shown in an answer."""
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
