"""Cases of news and copies built from articles."""

from __future__ import annotations

from functools import partial

import pytest

from aggregator.domain import Article
from aggregator_lab.evaluation import built_cases
from aggregator_lab.evaluation.built_cases import KINDS, addressed, five_versions
from aggregator_lab.evaluation.unrelated import Supply
from tests.support.factories import story


@pytest.fixture
def supply() -> Supply:
    """Forty articles of 200 words with headlines."""
    return Supply([Article(f"a{i}", f"Headline {i}", story(i, 20), lang="de") for i in range(40)], "de", 3)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_built_of_articles_with_words(supply: Supply, kind: str) -> None:
    case = KINDS[kind](supply)

    assert case[0].expected == "base"
    assert {item.expected for item in case} & {"news", "copy", "page"}
    assert all(item.article.title or item.article.text for item in case)
    assert len({article.id for article in addressed(case, 4)}) == len(case)


def test_a_digest_holds_the_openings_of_its_articles(supply: Supply) -> None:
    page, *articles, copy = built_cases.digest(supply, first=True)

    assert copy.article.text == page.article.text
    assert copy.article.source != page.article.source
    assert all(" ".join(item.article.text.split()[:40]) in page.article.text for item in articles)


def test_a_rolling_page_keeps_its_last_four_entries(supply: Supply) -> None:
    rolling = built_cases.live_page(supply, rolling=True)
    supply.refill()
    growing = built_cases.live_page(supply, rolling=False)

    assert [len(item.article.text.split()) for item in rolling] == [60, 120, 180, *[240] * 9]
    assert len(growing[-1].article.text.split()) == 720


@pytest.mark.parametrize(("percent", "words"), [(20, 140), (70, 240)])
def test_a_lead_is_followed_by_noise_of_other_articles(supply: Supply, percent: int, words: int) -> None:
    first, whole = built_cases.lead(supply, percent=percent)

    assert len(first.article.text.split()) == words
    assert whole.article.text.startswith(" ".join(first.article.text.split()[: words - 100]))


def test_a_notice_ends_all_articles_of_its_outlets(supply: Supply) -> None:
    page, *articles = built_cases.notice(supply, words=36, outlets=12)

    assert all(item.article.text.endswith(page.article.text) for item in articles)
    assert len({item.article.source for item in articles}) == 12


def test_a_bare_headline_is_a_phrase_of_the_text(supply: Supply) -> None:
    for first in (False, True):
        pair = [item.article for item in built_cases.bare_headline(supply, first=first)]
        headline, article = pair if first else reversed(pair)
        assert headline.text == ""
        assert headline.title in article.text


def test_parts_come_before_and_after_the_whole(supply: Supply) -> None:
    teaser_first = partial(built_cases.part_and_whole, half=False, whole_first=False)
    part, whole = teaser_first(supply)

    assert whole.article.text.startswith(part.article.text.removesuffix(" …"))
    assert (whole.expected, whole.fuller) == ("news", False)
    assert built_cases.part_and_whole(supply, half=True, whole_first=False)[1].fuller
    assert len({article.text for article in five_versions(supply)}) == 5
