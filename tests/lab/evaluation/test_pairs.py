"""Judged pairs: measures, invalid rows, and the development data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.models import load_models
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.pairs import SCORES, evaluate, format_table, load_pairs
from aggregator_lab.evaluation.wrong_pairs import JudgedPair
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


def file_of(directory: Path, rows: list[dict[str, Any]], name: str = "pairs.jsonl") -> list[str]:
    """A JSON lines file of these rows."""
    path = directory / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [str(path)]


def test_every_score_separates_copies_from_unrelated_articles(tmp_path: Path) -> None:
    """The area under the curve is 1."""
    report = evaluate(load_pairs(file_of(tmp_path, ROWS)), ANALYZER)

    assert len(report.pairs) == 10
    assert report.languages == ["all", "de"]
    assert [report.auc("all", score) for score in SCORES] == [1.0] * 4
    assert "ROC AUC" in format_table(report)
    assert report.as_json()["roc_auc"]["de"]["pairs"] == 10


def test_policies_call_copies_duplicates(tmp_path: Path) -> None:
    """``verified`` accepts edited copies and no unrelated pair. The file is given by its name."""
    report = evaluate(load_pairs(file_of(tmp_path, ROWS)[0]), ANALYZER)

    assert report.policy_metrics("verified") == (1.0, 1.0, 1.0)
    assert report.as_json()["policies"]["verified"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert "verified" in format_table(report)


def test_a_copy_with_news_is_not_dropped(tmp_path: Path) -> None:
    """The row "dropped" counts duplicates that are not to keep, as for labels."""
    fuller = row(1, 1, same=True) | {"text2": f"{row(1, 1)['text1']} {story(90)}"}
    policies = evaluate(load_pairs(file_of(tmp_path, [fuller, *ROWS])), ANALYZER).as_json()["policies"]

    assert (policies["verified"]["recall"], policies["dropped"]["precision"]) == (1.0, 1.0)
    assert policies["dropped"]["recall"] < 1.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            [{"text1": "a", "text2": "b", "is_duplicate": 1}],
            r"pairs\.jsonl, row 1: neither .*: the columns are text1, text2, is_duplicate; map .* same=NAME",
        ),
        (
            [row(1, 1, same="maybe")],
            r"pairs\.jsonl, row 1: `same` is 'maybe'; expected true or false, 1",
        ),
        (
            [{"text1": "a", "question2": "b", "same": True}],
            "row 1: no `text2`: the columns are text1, question2, same; map one with --column text2=NAME",
        ),
        ([row(1, 1, same=True)], "all of one kind"),
    ],
)
def test_the_error_names_an_invalid_row(wrong: list[dict[str, Any]], message: str, tmp_path: Path) -> None:
    """It says which row, and which field is missing."""
    with pytest.raises(InvalidInput, match=message):
        load_pairs(file_of(tmp_path, wrong))


def test_invalid_rows_cost_no_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are counted, and the first is named by its file and the row in it."""
    empty = row(1, 1, same=True) | {"text2": " ", "title2": "The ferry runs again"}
    invalid = [empty, row(1, 1, same="maybe"), row(1, 1)]
    files = file_of(tmp_path, ROWS, "first.jsonl") + file_of(tmp_path, [ROWS[0], *invalid, ROWS[-1]])

    assert len(load_pairs(files)) == 11
    assert capsys.readouterr().err == (
        f"3 rows left out, the first: {files[1]}, row 2: no `text2`: the cell is empty, or no "
        "text or number.\n"
    )


def test_a_pair_that_cannot_be_analyzed_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """The table counts the others."""
    words, marks = Article(id="a", text="The ferry runs again."), Article(id="b", text="...")
    report = evaluate([JudgedPair(words, words, True), JudgedPair(words, marks, False)], ANALYZER)

    assert len(report.pairs) == 1
    assert capsys.readouterr().err.startswith("1 pairs left out, the first: The article has no words")


@pytest.mark.data
def test_stored_terms_are_nearly_as_good_as_whole_texts() -> None:
    """SemEval-2022 task 8: ROC AUC of the stored terms is at most 0.05 below that of plain TF-IDF."""
    path = DATA / "semeval2022_t8_dev.jsonl.gz"
    if not path.exists():
        pytest.skip("the development data is not available (AGGREGATOR_DATA)")
    report = evaluate(load_pairs([str(path)]), Analyzer(load_models()))

    assert report.auc("all", "similarity") >= report.auc("all", "tf-idf") - 0.05


def test_judgments_may_be_cells_of_csv(tmp_path: Path) -> None:
    """Text instead of booleans and numbers."""
    cells = [
        {**pair, **{name: str(pair[name]) for name in ("same", "overall") if name in pair}} for pair in ROWS
    ]

    pairs = load_pairs(file_of(tmp_path, ROWS))
    assert load_pairs(file_of(tmp_path, cells)) == pairs
    ones = [{**pair, "same": int(pair["same"])} if "same" in pair else pair for pair in ROWS]
    assert load_pairs(file_of(tmp_path, ones)) == pairs


def test_dates_that_cannot_be_read_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As of articles: the rule goes by them."""
    dated = [
        row(s, s, same=True) | {"published_at1": "2026-01-05", "published_at2": "soon"} for s in range(2)
    ]

    first, *_ = load_pairs(file_of(tmp_path, [*ROWS, *dated]))[-2:]

    assert (first.first.published_at_ms, first.second.published_at_ms) == (1_767_571_200_000, None)
    assert "2 of 4 dates could not be read, e.g. 'soon'" in capsys.readouterr().err
