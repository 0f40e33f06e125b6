"""The probability of one subject, and the choice of one article per group."""

import pytest

from aggregator.domain import NO_SKETCH, ArticleRecord, WeightedTerms
from aggregator.queries.relatedness import ScoredArticle, best_of_groups, probability, related_evidence

FLOOD = (("brackwater", 0.8), ("tunnel", 0.6))


def record(terms: WeightedTerms, number: int = 1) -> ArticleRecord:
    """A stored article of these terms."""
    return ArticleRecord(
        number, number, f"a{number}", "en.0", "en", 0, b"", False, "", "", "", None, NO_SKETCH, tuple(terms)
    )


def scored(number: int, group: int, likely: float) -> ScoredArticle:
    """An article of a group with this probability."""
    stored = record(FLOOD, number)
    return ScoredArticle(stored, group, related_evidence(stored, stored, 1.0, 0), likely)


def test_evidence_is_the_same_in_either_order() -> None:
    """Of two articles with one term in common, and of two with none."""
    one, other = record(FLOOD), record((("tunnel", 1.0),))

    evidence = related_evidence(one, other, 0.5, 9)

    assert evidence == related_evidence(other, one, 0.5, 9)
    assert (evidence.shared, evidence.terms) == (1, 1)
    assert evidence.main == pytest.approx(0.6)
    assert related_evidence(one, record(()), 0.0, 30).shared == 0
    assert 0 < probability(related_evidence(one, record(()), 0.0, 30)) < 0.1
    assert probability(related_evidence(one, one, 1.0, 0)) > 0.9
    assert probability(related_evidence(one, one, 1.0, 0, hours_apart=-720.0)) < probability(
        related_evidence(one, one, 1.0, 0, hours_apart=24.0)
    )


def test_one_article_of_each_group_is_left() -> None:
    """The original with the probability of its likeliest copy."""
    found = best_of_groups([scored(1, 1, 0.4), scored(2, 1, 0.6), scored(3, 3, 0.6), scored(5, 4, 0.5)])

    assert [(each.record.number, each.probability) for each in found] == [(3, 0.6), (1, 0.6), (5, 0.5)]
