"""Ranking of related articles."""

import pytest

from aggregator.analysis.shingles import OverlapEstimate
from aggregator.dedup.evidence import Evidence
from aggregator.dedup.similarity import cosine, rank
from aggregator.dedup.verdict import Candidate
from aggregator.domain import NO_SKETCH, ArticleRecord


def candidate(
    number: int, distance: int, terms: tuple[tuple[str, float], ...], group: int | None = None
) -> Candidate:
    """Return a stored article named after its number."""
    record = ArticleRecord(
        number, number, f"a{number}", "en.0", "en", 0, b"", False, "", "", "", None, NO_SKETCH, terms
    )
    return Candidate(
        record,
        (f"a{group or number}", group or number),
        Evidence(OverlapEstimate(0, 0, 0), cosine(SEA, terms), distance),
    )


SEA, LAND = (("ferry", 0.8), ("harbour", 0.6)), (("orchard", 1.0),)


def test_cosine() -> None:
    """1 for equal vectors, 0 for disjoint or empty ones."""
    assert cosine(SEA, SEA) == pytest.approx(1)
    assert cosine(SEA, LAND) == 0
    assert cosine(SEA, ()) == 0


def test_most_similar_first_then_recent() -> None:
    """Similarity orders, the later arrival breaks ties, the distance does not matter."""
    stored = [candidate(1, 4, LAND), candidate(2, 7, SEA), candidate(3, 9, SEA)]
    ranked = rank(stored, exclude_group=None, limit=10)

    assert [(i.id, i.similarity) for i in ranked] == [("a3", 1.0), ("a2", 1.0), ("a1", 0.0)]


def test_each_group_appears_at_most_once() -> None:
    """The group of the article itself is excluded."""
    stored = [candidate(1, 2, SEA, group=9), candidate(2, 5, SEA, group=7), candidate(3, 5, LAND, group=7)]
    ranked = rank(stored, exclude_group=9, limit=10)

    assert [i.id for i in ranked] == ["a2"]


def test_limit() -> None:
    """At most ``limit`` articles are returned."""
    stored = [candidate(n, 5, SEA) for n in range(1, 9)]

    assert len(rank(stored, exclude_group=None, limit=3)) == 3
