"""Judged pairs: measures, invalid rows, and the development data."""

from __future__ import annotations

from typing import Any

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.models import load_models
from aggregator.errors import InvalidInput
from aggregator_archive.rows import read_rows
from aggregator_lab.evaluation.pairs import SCORES, evaluate, format_table, parse_pairs
from tests.support.development_data import DATA
from tests.support.factories import edited, story

ANALYZER = Analyzer({"xx": HashedModel()})


def row(first: int, second: int, **judgment: Any) -> dict[str, Any]:
    """A pair of generated stories; equal seeds give a story and an edited copy."""
    return {
        "text1": story(first),
        "text2": edited(story(second), 7),
        "lang1": "de",
        "lang2": "de",
        **judgment,
    }


ROWS = [
    *(row(s, s, same=True) for s in range(5)),
    *(row(s, s + 50, overall=3.5) for s in range(5)),
    row(1, 2, overall=2.5),
]


def test_every_score_separates_copies_from_unrelated_articles() -> None:
    """The area under the curve is 1."""
    report = evaluate(parse_pairs(ROWS), ANALYZER)

    assert len(report.pairs) == 10
    assert report.languages == ["all", "de"]
    assert [report.auc("all", score) for score in SCORES] == [1.0] * 4
    assert "ROC AUC" in format_table(report)
    assert report.as_json()["roc_auc"]["de"]["pairs"] == 10


def test_policies_call_copies_duplicates() -> None:
    """``verified`` accepts edited copies and no unrelated pair."""
    report = evaluate(parse_pairs(ROWS), ANALYZER)

    assert report.policy_metrics("verified") == (1.0, 1.0, 1.0)
    assert report.as_json()["policies"]["verified"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert "verified" in format_table(report)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            [{"text1": "a", "text2": "b", "is_duplicate": 1}],
            "Pair 1 has neither .*: the columns are text1, text2, is_duplicate; map .* --column same=NAME",
        ),
        (
            [row(1, 1, same=1), row(1, 1, same="maybe")],
            "Pair 2: `same` is 'maybe'; expected true or false, 1",
        ),
        (
            [{"text1": "a", "question2": "b", "same": True}],
            "Pair 1 has no `text2`: the columns are text1, question2, same; map one with --column text2=NAME",
        ),
        ([row(1, 1, same=True)], "all of one kind"),
    ],
)
def test_the_error_names_an_invalid_row(wrong: list[dict[str, Any]], message: str) -> None:
    """It says which row, and which field is missing."""
    with pytest.raises(InvalidInput, match=message):
        parse_pairs(wrong)


@pytest.mark.data
def test_stored_terms_are_nearly_as_good_as_whole_texts() -> None:
    """SemEval-2022 task 8: ROC AUC of the stored terms is at most 0.05 below that of plain TF-IDF."""
    path = DATA / "semeval2022_t8_dev.jsonl.gz"
    if not path.exists():
        pytest.skip("the development data is not available (AGGREGATOR_DATA)")
    report = evaluate(parse_pairs(read_rows([str(path)])), Analyzer(load_models()))

    assert report.auc("all", "similarity") >= report.auc("all", "tf-idf") - 0.05


def test_judgments_may_be_cells_of_csv() -> None:
    """Text instead of booleans and numbers."""
    cells = [
        {**pair, **{name: str(pair[name]) for name in ("same", "overall") if name in pair}} for pair in ROWS
    ]

    assert parse_pairs(cells) == parse_pairs(ROWS)
    ones = [{**pair, "same": int(pair["same"])} if "same" in pair else pair for pair in ROWS]
    assert parse_pairs(ones) == parse_pairs(ROWS)


def test_dates_that_cannot_be_read_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """As of articles: the rule goes by them."""
    dated = [
        row(s, s, same=True) | {"published_at1": "2026-01-05", "published_at2": "soon"} for s in range(2)
    ]

    first, *_ = parse_pairs([*ROWS, *dated])[-2:]

    assert (first.first.published_at_ms, first.second.published_at_ms) == (1_767_571_200_000, None)
    assert "2 of 4 dates could not be read, e.g. 'soon'" in capsys.readouterr().err
