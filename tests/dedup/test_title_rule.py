"""The title-dependent rule at its boundaries."""

import pytest

from aggregator.dedup.title_rule import required_similarity, title_similarity


@pytest.mark.parametrize(
    ("titles", "texts"),
    [(0.0, 0.85), (0.0999, 0.85), (0.1, 0.7), (0.15, 0.7), (0.2, 0.7), (0.2001, 0.2), (1.0, 0.2)],
)
def test_required_similarity(titles: float, texts: float) -> None:
    """Above .2, between .1 and .2, below .1; .1 and .2 themselves lie between."""
    assert required_similarity(titles) == texts


def test_title_similarity_meets_a_boundary_exactly() -> None:
    """One of five terms in common is .2, not a hair more."""
    one, other = "dam river valley night flood", "dam orchard cider harvest autumn"

    assert title_similarity(one, "en", other, "en") == 0.2
    assert title_similarity(one, "en", one, "en") == 1.0
    assert title_similarity(one, "en", "", "en") == 0.0
