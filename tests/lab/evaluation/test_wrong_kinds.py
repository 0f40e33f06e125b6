"""Kinds of duplicates that are to be read."""

from __future__ import annotations

import pytest

from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import DuplicatePair, StreamArticle, judge_pair
from aggregator_lab.evaluation.wrong_kinds import as_json, wrong_kinds
from tests.support.factories import story

NOTICE, BODY, OTHER = story(1, 6), story(2, 20), story(3, 20)
CASES = {
    "bare headline": (BODY, ""),
    "part": (f"{OTHER} {BODY}", BODY),
    "passage": (f"{OTHER} {NOTICE}", f"{BODY} {NOTICE}"),
    "other": (BODY, OTHER),
}


def kinds(articles: list[Article]) -> dict[str, list[DuplicatePair]]:
    """Of the pair of the last two."""
    stored = {a.id: StreamArticle(a, "de", a.id, None) for a in articles}  # type: ignore[arg-type]
    article, match = articles[-1], articles[-2]
    return wrong_kinds([DuplicatePair(article, match, "de", judge_pair(article, match, "de"))], stored)


@pytest.mark.parametrize("kind", CASES)
def test_kinds_by_wording(kind: str) -> None:
    texts = CASES[kind]
    first, second = Article("a", "Mayor opens bridge", texts[0]), Article("b", "Ferry aground", texts[1])

    assert {name for name, pairs in kinds([first, second]).items() if pairs} == {kind}
    assert as_json(kinds([first, second]))[kind] == {"pairs": 1, "dropped": 1}


def test_like_headlines_are_not_suspicious() -> None:
    articles = [
        Article(id_, "Mayor opens bridge", text) for id_, text in (("a", BODY), ("b", f"{OTHER} {BODY}"))
    ]

    assert not any(kinds(articles).values())


@pytest.mark.parametrize(("sources", "kind"), [(("x", "x"), "not the article"), (("y", "z"), None)])
def test_a_text_under_three_headlines_of_one_source(sources: tuple[str, str], kind: str | None) -> None:
    headlines = ["Mayor opens bridge", "Ferry runs aground", "Theatre names director"]
    articles = [
        Article(str(at), title, NOTICE, source=source)
        for at, (title, source) in enumerate(zip(headlines, ("x", *sources), strict=True))
    ]

    assert [name for name, pairs in kinds(articles).items() if pairs] == ([kind] if kind else [])
