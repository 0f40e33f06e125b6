"""Judged pairs: figures against definitions, wrong rows, and the development pairs."""

from __future__ import annotations

from typing import Any

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.models import load_models
from aggregator.errors import InvalidInput
from aggregator.offline.evaluation.pairs import SCORES, evaluate, format_table, parse_pairs
from aggregator.offline.jsonl import read_rows
from tests.support.development_data import DATA
from tests.support.factories import edited, story

ANALYSER = Analyzer({"xx": HashedModel()})


def row(first: int, second: int, **judgement: Any) -> dict[str, Any]:
    """A pair of made-up stories; equal numbers give a story and an edited copy."""
    return {
        "text1": story(first),
        "text2": edited(story(second), 7),
        "lang1": "de",
        "lang2": "de",
        **judgement,
    }


ROWS = [
    *(row(s, s, same=True) for s in range(5)),
    *(row(s, s + 50, overall=3.5) for s in range(5)),
    row(1, 2, overall=2.5),
]


def test_copies_and_strangers_are_told_apart_by_every_score() -> None:
    """A perfect order has an area of 1, and some threshold that makes no error."""
    report = evaluate(parse_pairs(ROWS), ANALYSER)

    assert len(report.pairs) == 10
    assert report.languages == ["all", "de"]
    assert [report.auc("all", score) for score in SCORES] == [1.0] * 4
    assert report.best_f1_point("similarity").f1 == 1.0
    assert "ROC AUC" in format_table(report)
    assert report.as_json()["roc_auc"]["de"]["pairs"] == 10


def test_what_each_policy_calls_the_same() -> None:
    """Copies by wording; nearly equal texts without headlines, and texts on one matter under equal ones."""
    report = evaluate(parse_pairs(ROWS), ANALYSER)
    headed = [{**r, "title1": "Ferry strikes pier", "title2": "Ferry strikes pier again"} for r in ROWS]

    assert report.policy_metrics("verified") == (1.0, 1.0, 1.0)
    assert report.policy_metrics("same-event")[0] == 1.0
    assert evaluate(parse_pairs(headed), ANALYSER).policy_metrics("same-event")[:2] == (
        0.625,
        1.0,
    )  # these made-up words are few
    assert report.as_json()["policies"]["verified"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert "same-event" in format_table(report)


def test_thresholds_trade_precision_for_recall() -> None:
    """Recall never grows with the threshold."""
    points = evaluate(parse_pairs(ROWS), ANALYSER).threshold_points("overlap")

    assert [p.recall for p in points] == sorted((p.recall for p in points), reverse=True)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([{"text1": "a", "text2": "b"}], "Pair 1 has neither"),
        ([{"text1": "a", "same": True}], "Pair 1 has no `text2`"),
        ([row(1, 1, same=True)], "all of one kind"),
    ],
)
def test_wrong_rows_are_named(wrong: list[dict[str, Any]], said: str) -> None:
    """One sentence says which row, and what it lacks."""
    with pytest.raises(InvalidInput, match=said):
        parse_pairs(wrong)


@pytest.mark.data
def test_stored_terms_judge_nearly_as_well_as_whole_texts() -> None:
    """SemEval-2022 task 8: the heaviest terms lose at most .05 of the area of plain TF-IDF."""
    path = DATA / "semeval2022_t8_dev.jsonl.gz"
    if not path.exists():
        pytest.skip("the development data is not here (AGGREGATOR_DATA)")
    report = evaluate(parse_pairs(read_rows([str(path)])), Analyzer(load_models()))

    assert report.auc("all", "similarity") >= report.auc("all", "tf-idf") - 0.05
