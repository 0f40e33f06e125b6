"""The title-dependent rule at its boundaries."""

import pytest

from aggregator.dedup.title_rule import required_similarity, title_similarity


@pytest.mark.parametrize(
    ("titles", "texts"),
    [(0.0, 0.85), (0.0999, 0.85), (0.1, 0.7), (0.15, 0.7), (0.2, 0.7), (0.2001, 0.2), (1.0, 0.2)],
)
def test_required_similarity(titles: float, texts: float) -> None:
    """Above 0.2, from 0.1 to 0.2 inclusive, below 0.1."""
    assert required_similarity(titles) == texts


def test_title_similarity_meets_a_boundary_exactly() -> None:
    """One of five terms in common gives exactly 0.2."""
    title, other_title = "dam river valley night flood", "dam orchard cider harvest autumn"

    assert title_similarity(title, "en", other_title, "en") == 0.2
    assert title_similarity(title, "en", title, "en") == 1.0
    assert title_similarity(title, "en", "", "en") == 0.0
