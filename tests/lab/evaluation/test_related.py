"""Related articles of labeled events, compared with brute force."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.time_units import DAY_MS
from aggregator_lab.evaluation.judgments import Judgment
from aggregator_lab.evaluation.rankings import RANKINGS
from aggregator_lab.evaluation.related import AGES_DAYS, evaluate, format_firsts, format_table
from aggregator_lab.evaluation.related_store import store_articles
from tests.support.factories import story

ANALYZER = Analyzer({"xx": HashedModel()})


def words(seed: int, count: int) -> list[str]:
    """The first words of a generated story."""
    return story(seed, count // 10 + 1).lower().replace(".", "").split()[:count]


def reports(events: int, each: int) -> tuple[list[Article], dict[str, str]]:
    """``each`` articles per event: the same words in different orders, so related but not copies; labels."""
    articles, labels = [], {}
    for event in range(events):
        for seed in range(each):
            shuffled = words(event, 60)
            random.Random(seed).shuffle(shuffled)
            day_ms = (20_000 + seed) * DAY_MS
            text = " ".join(shuffled[seed:])
            articles.append(Article(id=f"{event}-{seed}", text=text, lang="de", published_at_ms=day_ms))
            labels[articles[-1].id] = f"event {event}"
    return articles, labels


BACKGROUND = [Article(id=f"b{seed}", text=story(1000 + seed, 6), lang="de") for seed in range(40)]


async def test_recall_is_compared_with_brute_force() -> None:
    """Every ranking finds the articles of an event; a wrong first answer and ages are counted.

    The progress of each step is reported.
    """
    steps = dict[str, int]()

    def progress(step: str, items: Sequence[Article | str]) -> Sequence[Article | str]:
        steps[step] = len(items)
        return items

    articles, labels = reports(5, 3)
    judgments = [Judgment("0-0", "0-1", "wrong"), Judgment("0-0", "0-2", "wrong")]
    report = await evaluate(
        articles, ANALYZER, labels=labels, background=BACKGROUND, k=2, lists=30,
        compare=RANKINGS, judgments=judgments, progress=progress,
    )  # fmt: skip
    rankings = {ranking.name: ranking for ranking in report.rankings}

    assert next(iter(steps.items())) == ("articles", 55) and list(steps)[1:] == list(rankings)
    assert list(rankings) == ["related", "exhaustive", "no minimum", *RANKINGS]
    assert rankings["no minimum"].shown == 2.0 > rankings["related"].shown
    assert report.labeled == 15 and report.lists == 30
    assert rankings["exhaustive"].recall == rankings["tf-idf"].ndcg == rankings["bm25"].recall == 1.0
    assert report.of_brute_force("recall") == rankings["related"].recall and rankings["exhaustive"].found == 1
    assert rankings["tf-idf"].wrong == rankings["tf-idf"].judged > 0
    assert 0 < rankings["bm25"].largest < 1
    assert set(report.ages) == set(AGES_DAYS) and sum(report.ages.values()) == pytest.approx(1)
    table = format_table(report, "news.jsonl")
    assert table.startswith("news.jsonl: 55 articles;")
    assert report.as_json()["rankings"][1]["recall"] == 1.0


async def test_equal_articles_give_equal_lists() -> None:
    """How rare a term is depends on the articles that the index samples by their numbers."""
    articles, labels = reports(2, 2)
    numbers = []
    for _ in range(2):
        stored, _ = await store_articles(articles, labels, (), ANALYZER, Policy(), 0.5)
        found = await stored.index.bindings.find_many([article.id for article in articles])
        numbers.append({id_: each.binding.number for id_, each in found.items()})

    assert len(numbers[0]) == 4 and numbers[0] == numbers[1]


async def test_an_article_of_stop_words_has_no_nearest_ones() -> None:
    """It has no terms to be scored by, and costs the ranking nothing."""
    articles, labels = reports(2, 2)
    articles.append(Article(id="both", title="Both ways", text="", lang="en"))
    report = await evaluate(articles, ANALYZER, labels=labels, compare=RANKINGS)

    assert [(r.name, r.recall) for r in report.rankings[3:]] == [("tf-idf", 1.0), ("bm25", 1.0)]


async def test_first_answers_are_printed_to_be_read() -> None:
    """Without labels the questions are random articles, the same in every run."""
    articles, _ = reports(3, 2)
    first, second = [await evaluate([*articles, *BACKGROUND[:2]], ANALYZER, lists=8) for _ in range(2)]

    assert first == second and first.labeled == 0
    pairs = [block.splitlines() for block in format_firsts(first, 99).split("\n\n")]
    assert sorted(pair[0].split()[0] for pair in pairs) == sorted(article.id for article in articles)
    assert all(a.split()[0][0] == b.split()[0][0] for a, b in pairs)


async def test_events_with_one_article_are_refused() -> None:
    """There is nothing to find."""
    articles, labels = reports(4, 1)
    with pytest.raises(InvalidInput, match="about one event"):
        await evaluate(articles, ANALYZER, labels=labels)
