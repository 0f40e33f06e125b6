"""Related articles of labelled events, beside brute force."""

from __future__ import annotations

import random

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.offline.evaluation.near_duplicates import LabeledArticle
from aggregator.offline.evaluation.related import evaluate, format_table
from tests.support.factories import story

ANALYSER = Analyzer({"xx": HashedModel()})


def words(seed: int, count: int) -> list[str]:
    """Made-up words."""
    return story(seed, count // 10 + 1).lower().replace(".", "").split()[:count]


def reports(events: int, each: int) -> list[LabeledArticle]:
    """Events told several times: the same words in another order, so alike and no copies."""
    told = []
    for event in range(events):
        for at in range(each):
            turned = words(event, 60)
            random.Random(at).shuffle(turned)
            text = " ".join(turned[at:])
            told.append(LabeledArticle(Article(id=f"{event}-{at}", text=text, lang="de"), f"event {event}"))
    return told


BACKGROUND = [Article(id=f"b{seed}", text=story(1000 + seed, 6), lang="de") for seed in range(40)]


async def test_retold_events_are_found_as_brute_force_finds_them() -> None:
    """Brute force finds every one; what we show is found by the same similarity."""
    report = await evaluate(reports(5, 3), ANALYSER, background=BACKGROUND, k=2)
    ours, brute = report.rankings

    assert report.question_count == 15
    assert brute.recall == 1.0
    assert brute.ndcg == 1.0
    assert 0 < ours.recall <= 1.0
    assert report.recall_of_brute_force == ours.recall
    assert "brute force" in format_table(report)
    assert report.as_json()["asked"] == 15


async def test_two_runs_agree() -> None:
    """Places in the stream are seeded."""
    one, other = [await evaluate(reports(3, 2), ANALYSER, background=BACKGROUND) for _ in range(2)]

    assert one == other


async def test_nothing_to_find() -> None:
    """Events told once cannot be scored."""
    with pytest.raises(InvalidInput, match="about one event"):
        await evaluate(reports(4, 1), ANALYSER)
