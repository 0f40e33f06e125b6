"""How likely a reader would say that two articles have the same subject: order and end of a list. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import mul

from aggregator.analysis.term_profile import subject_terms
from aggregator.domain import Analysis, ArticleRecord

MIN_PROBABILITY = 0.78
HEADLINE_TERMS = 12  # fewer give a cosine by chance
NO_RARITY: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True)
class RelatedEvidence:
    """What is known of two articles in one language; the same in either order.

    cosine    of the term profiles (``term_profile.cosines``), 0..1
    main      cosine of the ``subject_terms``, 0..1: counts rare terms more than ``cosine``
    shared    number of these in both
    terms     number of these of the article that has fewer, 0..24
    distance  of the fingerprints, in bits
    rarity    mean rarity, 0..1, in the index of the shared stored terms, by weight; 0.5 if none is shared
    days      between them, >= 0
    """

    cosine: float
    main: float
    shared: int
    terms: int
    distance: int
    rarity: float = 1.0
    days: float = 0.0


@dataclass(frozen=True, slots=True)
class ScoredArticle:
    """A candidate with its duplicate group (number of the group's first article) and its probability."""

    record: ArticleRecord
    group: int
    evidence: RelatedEvidence
    probability: float
    in_event: bool = False  # of the article that it is related to
    hours_older: float | None = None  # than that one; None: unknown
    because_of: str = ""  # id of that one


def related_evidence(
    a: Analysis | ArticleRecord,
    b: ArticleRecord,
    cosine: float,
    distance: int,
    rarity: Mapping[str, float] = NO_RARITY,
    hours_apart: float | None = None,
) -> RelatedEvidence:
    """The evidence about two articles; ``rarity`` of the terms of ``a``, 1 if unknown."""
    weights, others = subject_terms(a), subject_terms(b)
    shared = [(term, weights[term], weight) for term, weight in others.items() if term in weights]
    main = sum([one * other for _, one, other in shared])
    rare = sum([rarity.get(term, 1.0) * one * other for term, one, other in shared])
    return RelatedEvidence(
        cosine,
        min(1.0, main),
        len(shared),
        min(len(weights), len(others)),
        distance,
        rare / main if main else 0.5,
        abs(hours_apart or 0.0) / 24,
    )


def probability(evidence: RelatedEvidence) -> float:
    """Probability, 0..1, that a reader of one would call the other an article on the same subject."""
    return 1 / (1 + math.exp(-BIAS - sum(map(mul, WEIGHTS, features(evidence)))))


def features(evidence: RelatedEvidence) -> tuple[float, ...]:
    """What the probability depends on; articles of one day are of the same news."""
    terms, days = min(evidence.terms, HEADLINE_TERMS), max(1.0, evidence.days)
    return evidence.cosine, evidence.cosine * evidence.rarity, math.log1p(terms), math.log(days)


# Fitted to strictly judged pairs of nine languages (``aggregator evaluate relatedness``).
BIAS, WEIGHTS = -3.98, (5.83, 1.96, 1.18, -0.74)


def best_of_groups(scored: Iterable[ScoredArticle]) -> list[ScoredArticle]:
    """One article of each duplicate group, the likeliest first (ties: latest first).

    Of a group it is the original if that was found; the probability is that of the likeliest copy.
    """
    best = dict[int, ScoredArticle]()
    for each in sorted(scored, key=lambda s: (s.probability, s.record.number), reverse=True):
        kept = best.setdefault(each.group, each)
        if each.record.first_version == each.group:
            best[each.group] = replace(each, evidence=kept.evidence, probability=kept.probability)
    return list(best.values())
