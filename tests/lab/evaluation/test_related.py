"""Related articles of labeled events, compared with brute force."""

from __future__ import annotations

import random

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.related import evaluate, format_table
from aggregator_lab.labeled import LabeledArticle
from tests.support.factories import story

ANALYZER = Analyzer({"xx": HashedModel()})


def words(seed: int, count: int) -> list[str]:
    """The first words of a generated story."""
    return story(seed, count // 10 + 1).lower().replace(".", "").split()[:count]


def reports(events: int, each: int) -> list[LabeledArticle]:
    """``each`` articles per event: the same words in different orders, so related but not copies."""
    articles = []
    for event in range(events):
        for seed in range(each):
            shuffled = words(event, 60)
            random.Random(seed).shuffle(shuffled)
            article = Article(id=f"{event}-{seed}", text=" ".join(shuffled[seed:]), lang="de")
            articles.append(LabeledArticle(article, f"event {event}"))
    return articles


BACKGROUND = [Article(id=f"b{seed}", text=story(1000 + seed, 6), lang="de") for seed in range(40)]


async def test_recall_is_compared_with_brute_force() -> None:
    """Brute force finds every article of an event; the service ranks by the same similarity."""
    report = await evaluate(reports(5, 3), ANALYZER, background=BACKGROUND, k=2)
    served, brute_force = report.rankings

    assert report.question_count == 15
    assert brute_force.recall == 1.0
    assert brute_force.ndcg == 1.0
    assert 0 < served.recall <= 1.0
    assert report.recall_of_brute_force == served.recall
    assert "brute force" in format_table(report)
    assert report.as_json()["asked"] == 15


async def test_two_runs_give_equal_results() -> None:
    """Positions in the stream are seeded."""
    first, second = [await evaluate(reports(3, 2), ANALYZER, background=BACKGROUND) for _ in range(2)]

    assert first == second


async def test_events_with_one_article_are_refused() -> None:
    """There is nothing to find."""
    with pytest.raises(InvalidInput, match="about one event"):
        await evaluate(reports(4, 1), ANALYZER)
