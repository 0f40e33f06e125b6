"""Similarity of headlines."""

from __future__ import annotations

from aggregator.dedup.headlines import title_similarity, title_terms


def test_the_similarity_counts_shared_terms() -> None:
    """The order of the words does not matter; 0 without terms."""
    assert title_similarity("Dam breaks at Larkmere", "en", "Larkmere: dam breaks", "en") == 1.0
    assert 0 < title_similarity("Dam breaks", "en", "Dam repaired", "en") < 1
    assert (
        title_similarity("", "en", "Dam breaks", "en") == title_similarity("Dam", "en", "Ferry", "en") == 0.0
    )


def test_the_terms_of_a_headline() -> None:
    """Each once, without stop words."""
    assert title_terms("The dam of the dam", "en") == {"dam"}
