"""Pair scorers: the text similarity that headlines require."""

from __future__ import annotations

import pytest

from aggregator.domain import Article
from aggregator_lab.evaluation.pair_scorers import tfidf_with_equal_titles


@pytest.mark.parametrize(
    ("title", "score"),
    [("Late: ferry", 1 / 1.2), ("Ferry sinks", 1 / 1.85), ("", 1 / 1.85)],
)
def test_equal_titles_require_less_of_equal_texts(title: str, score: float) -> None:
    """A cosine of 1 relative to 0.2 for the same terms in any order, to 0.85 otherwise."""
    text = "The ferry between Brackwater and Estmark runs again."
    articles = [
        Article(id="a", title="Ferry late", text=text, lang="en"),
        Article(id="b", title=title, text=text, lang="en"),
    ]

    assert tfidf_with_equal_titles(articles).score.tolist() == pytest.approx([score])
