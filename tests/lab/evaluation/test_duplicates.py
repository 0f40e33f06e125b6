"""Report on duplicates among unlabeled articles: counts per source, companies, tables."""

from __future__ import annotations

import json

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import DuplicateStream
from aggregator_lab.evaluation.duplicates import (
    DuplicatesReport,
    format_table,
    names_other_companies,
    service_report,
    shingling_report,
    tickers,
)
from aggregator_lab.evaluation.shingling import ShinglingSettings
from tests.support.factories import edited, story

ANALYZER = Analyzer({"xx": HashedModel()})
# A rule that asks for shared wording only: the default rule makes no wrong duplicate here.
WORDING_ONLY = Policy(min_opening=0.0, same_outlet_opening=0.0)
GALLERY = story(90, 60)  # a passage that unrelated articles of one site share


def stream() -> list[Article]:
    """Two sources: a right copy in one, a copy that only shares a gallery in the other, an empty article."""
    return [
        Article("a1", "Mayor opens bridge", story(1, 20), source="a", lang="de", published_at_ms=1_000_000),
        Article("b1", "Ferry runs aground", f"{story(2, 20)} {GALLERY}", source="b", lang="de"),
        Article("a2", "Bridge opened", edited(story(1, 20), 5), source="a", lang="de"),
        Article("b2", "Theatre names director", f"{story(3, 20)} {GALLERY}", source="b", lang="de"),
        Article("b3", "Nothing like it", story(4, 20), source="b", lang="de"),
        Article("b4", "", "...", source="b", lang="de"),
    ]


async def sent(articles: list[Article]) -> DuplicateStream:
    """A stream that was sent ``articles``."""
    opened = DuplicateStream(ANALYZER, WORDING_ONLY)
    await opened.send(articles)
    return opened


async def report() -> DuplicatesReport:
    return service_report(await sent(stream()))


async def test_duplicates_are_counted_per_source() -> None:
    """The pair that shares only the gallery is wrong."""
    result = await report()

    assert [(pair.article.id, pair.match.id, pair.evidence.wrong) for pair in result.pairs] == [
        ("a2", "a1", False),
        ("b2", "b1", True),
    ]
    assert result.rows() == [
        {"source": "b", "lang": "de", "articles": 3, "duplicates": 1, "wrong": 1, "wrong_share": 1.0},
        {"source": "a", "lang": "de", "articles": 2, "duplicates": 1, "wrong": 0, "wrong_share": 0.0},
    ]
    assert result.total()["wrong"] == 1
    assert result.rejected == 1
    assert sum(result.histogram()["duplicates"]) == 2
    assert sum(result.histogram()["wrong"]) == 1
    assert result.companies() is None
    assert json.loads(json.dumps(result.as_json()))["total"]["duplicates"] == 2


async def test_the_table_shows_sources_and_companies() -> None:
    """Sources beyond the first 10 are one row; companies are shown if a duplicate names one."""
    articles = [Article(f"s{i}", text=story(200 + i, 5), source=f"source {i}", lang="de") for i in range(25)]
    named = [f"<PIER> {story(50, 15)}", f"<ORC> {story(50, 15)}"]
    articles += [Article(f"n{i}", text=text, source="wire", lang="de") for i, text in enumerate(named)]

    table = format_table(service_report(await sent(articles)))

    assert "16 others" in table
    assert "1 of 1 duplicates name other companies" in table
    assert "rejected" not in table
    assert "1 articles without text were rejected" in format_table(await report())


async def test_shingling_decides_the_same_articles() -> None:
    """It finds the copy and the shared gallery; an overlap above that of the gallery leaves the copy."""
    opened = await sent(stream())

    low, high = (shingling_report(opened, ShinglingSettings(p=64, r=r)) for r in (0.2, 0.99))

    assert low.total() | {"lang": ""} == (await report()).total() | {"lang": ""}
    assert [(pair.article.id, pair.match.id) for pair in high.pairs] == []
    assert low.as_json()["method"] == "shingling n=3 k=1 p=64 t=1 f=1 r=0.2"


def test_symbols_are_read_from_headline_and_text() -> None:
    article = Article(id="a", title="ORCHARD <ORC> TO SPLIT", text="It will join <PIER.B>, <not one> and <>.")

    assert tickers(article) == {"<ORC>", "<PIER.B>"}


@pytest.mark.parametrize(
    ("a", "b", "other"),
    [("<ORC>", "<PIER>", True), ("<ORC>", "<ORC> <PIER>", False), ("<ORC>", "", False), ("", "<ORC>", False)],
)
def test_other_companies_are_named_by_both(a: str, b: str, other: bool) -> None:
    assert names_other_companies(Article(id="a", text=a), Article(id="b", text=b)) is other
