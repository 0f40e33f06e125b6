"""Report on duplicates among unlabeled articles: counts per source, kinds, tables."""

from __future__ import annotations

import json

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import DuplicateStream
from aggregator_lab.evaluation.duplicates import (
    DuplicatesReport,
    format_pairs,
    format_table,
    service_report,
    shingling_report,
)
from aggregator_lab.evaluation.shingling import ShinglingSettings
from tests.support.factories import edited, story

ANALYZER = Analyzer({"xx": HashedModel()})
# A rule that asks for shared wording only: the default rule makes no wrong duplicate here, and keeps it.
WORDING_ONLY = Policy(min_opening=0.0, same_outlet_opening=0.0, keep_if_adds=0.5)
GALLERY = story(90, 60)  # a passage that unrelated articles of one site share


def stream() -> list[Article]:
    """Two sources: a right copy in one, a copy that only shares a gallery in the other, an empty article."""
    ferry, theatre = "Ferry runs aground", "Theatre names director"
    return [
        Article("a1", "Mayor opens bridge", story(1, 20), source="a", lang="de", published_at_ms=1_000_000),
        Article("b1", ferry, f"{ferry}. {story(2, 20)} {GALLERY}", source="b", lang="de"),
        Article("a2", "Bridge opened", edited(story(1, 20), 5), source="a", lang="de"),
        Article("b2", theatre, f"{theatre}. {story(3, 20)} {GALLERY}", source="b", lang="de"),
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
        {
            "source": "b",
            "lang": "de",
            "articles": 3,
            "duplicates": 1,
            "dropped": 1,
            "wrong": 1,
            "wrong_share": 1.0,
        },
        {
            "source": "a",
            "lang": "de",
            "articles": 2,
            "duplicates": 1,
            "dropped": 1,
            "wrong": 0,
            "wrong_share": 0.0,
        },
    ]
    assert result.total()["wrong"] == 1
    assert result.rejected == 1
    values = json.loads(json.dumps(result.as_json()))
    assert values["total"]["dropped"] == 2
    assert values["natural_copies"]["all"] == {"copies": 1, "found": 1, "needless": 0, "missed": []}


async def test_the_table_shows_sources_kinds_and_natural_copies() -> None:
    """Sources beyond the first 10 are one row."""
    articles = [Article(f"s{i}", text=story(200 + i, 5), source=f"source {i}", lang="de") for i in range(25)]
    articles += [Article(f"n{i}", text=story(50, 15), source="wire", lang="de") for i in range(2)]

    table = format_table(service_report(await sent(articles)))

    assert "16 others" in table
    assert "natural copies, like headlines: 1 of 1 found, 0 kept without need" in table
    assert "suspicious duplicates (dropped): not the article 0 (0)," in table
    assert "rejected" not in table
    assert "1 articles without text were rejected" in format_table(await report())


async def test_shingling_decides_the_same_articles() -> None:
    """It finds the copy and the shared gallery; an overlap above that of the gallery leaves the copy."""
    opened = await sent(stream())

    low, high = (shingling_report(opened, ShinglingSettings(p=64, r=r)) for r in (0.2, 0.99))

    assert low.total() | {"lang": ""} == (await report()).total() | {"lang": ""}
    assert [(pair.article.id, pair.match.id) for pair in high.pairs] == []
    assert low.as_json()["method"] == "shingling n=3 k=1 p=64 t=1 f=1 r=0.2"


async def test_texts_that_are_not_the_article_are_counted() -> None:
    result = await report()
    result.not_articles = [Article("a1", "Mayor opens bridge", "Subscribe")]

    assert "texts that are not the article: 1 (20.00%)" in format_table(result)
    assert result.as_json()["not_articles"] == ["a1"]


async def test_pairs_are_printed_below_their_matches() -> None:
    lines = format_pairs((await report()).dropped_pairs[:1]).splitlines()

    assert lines[0].startswith("[1] ")
    assert lines[1] == "  a1 (a): Mayor opens bridge"
    assert lines[3] == "  a2 (a): Bridge opened"
    assert len(lines[4].strip()) <= 200
