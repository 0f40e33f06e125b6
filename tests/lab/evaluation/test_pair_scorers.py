"""Pair scorers: the text similarity that headlines require."""

from __future__ import annotations

import pytest

from aggregator_lab.evaluation.pair_scorers import required_similarity


@pytest.mark.parametrize(
    ("titles", "texts"),
    [(0.0, 0.85), (0.0999, 0.85), (0.1, 0.7), (0.15, 0.7), (0.2, 0.7), (0.2001, 0.2), (1.0, 0.2)],
)
def test_required_similarity(titles: float, texts: float) -> None:
    """Above 0.2, from 0.1 to 0.2 inclusive, below 0.1."""
    assert required_similarity(titles) == texts
