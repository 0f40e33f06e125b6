"""Articles lost in built streams."""

from __future__ import annotations

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article, Match, Outcome
from aggregator_lab.evaluation import built_streams
from aggregator_lab.evaluation.built_cases import Case, Item
from aggregator_lab.evaluation.built_streams import BuiltResult, evaluate, format_table
from tests.support.factories import story

DROPPED = Outcome("duplicate", 3, Match("0", 1, "0", 1, 3, 0.9, "overlap"), keep=False)


def answer(number: int, *, kept: bool) -> Answer:
    """A duplicate of the first article, or a new one."""
    return Answer(str(number), Outcome("new") if kept else DROPPED, "xx", 0, short=False)


def counted(texts: list[str], expected: list[str], kept: list[bool]) -> BuiltResult:
    """The counts of one case."""
    articles = [Article(str(at), f"Headline {at}", text) for at, text in enumerate(texts)]
    case: Case = [Item(article, name) for article, name in zip(articles, expected, strict=True)]  # type: ignore[arg-type]
    result = BuiltResult("de", "test")
    result.count(case, articles, [answer(at, kept=keep) for at, keep in enumerate(kept)])
    return result


def test_news_dropped_is_lost_and_a_copy_kept_is_needless() -> None:
    result = counted(["x"] * 4, ["base", "news", "news", "copy"], [True, False, True, True])

    assert (result.articles, result.lost, result.copies, result.needless, result.missed) == (2, 1, 1, 1, 1)
    assert result.examples[0][:2] == ("1", "overlap 0.9 3")


@pytest.mark.parametrize(("second_kept", "lost"), [(True, 0), (False, 1)])
def test_a_page_has_news_if_no_kept_version_had_its_words(second_kept: bool, lost: int) -> None:
    """Words of a version that was dropped are still unread."""
    entries = [story(seed, 6) for seed in range(3)]
    versions = [entries[0], f"{entries[1]} {entries[0]}", f"{entries[1]} {entries[0]}"]

    result = counted(versions, ["base", "page", "page"], [True, second_kept, False])

    assert result.lost == (lost and 2)
    assert result.articles == (1 if second_kept else 2)


async def test_streams_are_sent_through_the_service() -> None:
    """The same for the same seed; a language with few articles is left out."""
    articles = [Article(f"d{i}", f"Headline {i}", story(i, 16), lang="de") for i in range(50)]
    articles += [Article(f"s{i}", f"Titular {i}", story(100 + i, 16), lang="es") for i in range(9)]
    analyzer = Analyzer({"xx": HashedModel()})

    results, partitions = await evaluate(articles, analyzer, Policy(), 4, kinds=["its half", "quotation"])
    again, _ = await evaluate(articles, analyzer, Policy(), 4, kinds=["its half", "quotation"])

    assert [(row.lang, row.kind, row.cases) for row in results] == [
        *(("de", f"quotation of {n} words", 4) for n in (30, 64, 120)),
        ("de", "whole, then its half", 4),
    ]
    assert (results[-1].copies, results[-1].missed, results[0].lost) == (4, 0, 0)
    assert results == again
    assert partitions == {}
    assert "quotation of 64 words" in format_table(results, {"de": [2, 3]})


async def test_partitions_of_all_orders_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_streams, "ORDERED_ARTICLES", 1)
    articles = [Article(f"d{i}", f"Headline {i}", story(i, 16), lang="de") for i in range(50)]

    results, partitions = await evaluate(
        articles, Analyzer({"xx": HashedModel()}), Policy(), 4, kinds=["orders"]
    )

    assert results == []
    assert 1 <= partitions["de"][0] <= 120
