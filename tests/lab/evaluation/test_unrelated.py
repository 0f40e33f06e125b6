"""Articles that test streams are built from."""

from __future__ import annotations

import pytest

from aggregator.domain import Article
from aggregator_lab.evaluation.unrelated import (
    ExhaustedError,
    Supply,
    joined_pieces,
    shingles,
    unknown_share,
    unrelated,
)
from tests.support.factories import story

ARTICLES = [Article(f"a{i}", title=f"Headline {i}", text=story(i, 10), lang="de") for i in range(6)]


def test_an_article_with_known_wording_headline_or_few_words_is_left_out() -> None:
    mixed = Article("m", title="Mixed", text=f"{story(7, 8)} {story(1, 3)}")
    repeated = Article("r", title="Headline 2", text=story(8, 10))
    short = Article("s", title="Short", text=story(9, 5))

    chosen = unrelated([*ARTICLES, mixed, repeated, short], "de")

    assert [source.article.id for source in chosen] == [article.id for article in ARTICLES]


def test_each_article_is_taken_once_until_all_are_made_available_again() -> None:
    supply = Supply(ARTICLES, "de", seed=1)
    first = [supply.take().article.id for _ in ARTICLES]

    assert sorted(first) == [article.id for article in ARTICLES]
    with pytest.raises(ExhaustedError):
        supply.take()
    supply.refill()
    with pytest.raises(ExhaustedError):
        supply.take(101)
    assert supply.take(100).words(0, 2).count(" ") == 1
    assert len(supply.noise(100).split()) == 100


def test_the_unknown_share_counts_words() -> None:
    """Each shared run of five words covers all of its words, also where runs overlap."""
    known = joined_pieces("One two, three four five six.", "en")
    text = joined_pieces("Zero: one two three four five six - seven eight", "en")

    assert unknown_share(text, shingles(known)) == pytest.approx(3 / 9)
    assert unknown_share([], shingles(known)) == 1.0
    assert unknown_share(joined_pieces("新公交时刻表获批准", "zh"), set()) == 1.0
