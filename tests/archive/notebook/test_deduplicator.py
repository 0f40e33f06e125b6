"""Verdicts of a table agree with ``aggregator dedupe``; columns, invalid rows and options."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from aggregator.dedup.policy import Policy
from aggregator.errors import InvalidInput
from aggregator.runtime import demo
from aggregator_archive.notebook import Deduplicator
from aggregator_archive.notebook.deduplicator import RESULT_COLUMNS
from tests.cli.helpers import run

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
ARTICLES = [demo.article_body(row, NOON) for row in demo.load_rows()]
FERRY = "The ferry between Brackwater and Estmark runs again from Monday, every hour until ten at night."


def test_the_result_is_that_of_the_command(tmp_path: Path) -> None:
    """Groups and kept rows of the invented articles, from a data frame and from a file."""
    columns = Deduplicator().run(pandas.DataFrame(ARTICLES))
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(article) + "\n" for article in ARTICLES))

    assert run("dedupe", str(file), "--out", str(tmp_path / "out"), "--processes", "1", "--no-progress") == 0
    lines = (tmp_path / "out" / "clusters.jsonl").read_text(encoding="utf-8").splitlines()
    clusters = [json.loads(line) for line in lines]
    originals = {a["id"]: o for a, o in zip(ARTICLES, columns["original"], strict=True) if o is not None}

    assert originals == {row["id"]: row["copy_of"] for row in clusters if row["copy_of"]}
    assert len(originals) > 10


def test_columns_have_one_value_per_row() -> None:
    """A copy names its original; an unusable row has a problem and no group."""
    table = [{"id": "a", "text": FERRY}, {"text": "", "title": None}, {"id": "b", "text": FERRY}]

    assert Deduplicator(language="en").run(table) == {
        "group": [0, None, 0],
        "verdict": ["new", "invalid", "duplicate"],
        "original": [None, None, "a"],
        "original_row": [None, None, 0],
        "distance": [None, None, 0],
        "similarity": [None, None, 1.0],
        "problem": ["", "The row has neither text, html nor title.", ""],
    }


def test_the_position_names_one_of_two_rows_of_one_id(capsys: pytest.CaptureFixture[str]) -> None:
    """``original`` names both; positions count invalid rows, too, whatever the index of a frame."""
    texts = ["The swing bridge is shut.", None, FERRY, FERRY]
    frame = pandas.DataFrame({"id": [7] * 4, "text": texts}, index=[3, 2, 1, 0])

    columns = Deduplicator().run(frame)

    assert (columns["original"][3], columns["original_row"][3]) == ("7", 2)
    assert "earlier row: 2; results name rows by original_row\n" in capsys.readouterr().err


@pytest.mark.parametrize("table", [[], pandas.DataFrame(), pandas.DataFrame({"text": []})])
def test_an_empty_table_gives_empty_columns(table: Any) -> None:
    """A filter may leave no row."""
    assert Deduplicator().run(table) == {name: [] for name in RESULT_COLUMNS}


def test_ids_of_a_column_that_lacks_one() -> None:
    """Its numbers are floats in pandas; a row without an id gets one of its text."""
    columns = Deduplicator().run(pandas.DataFrame({"id": [12, None, 1.5], "text": [FERRY] * 3}))

    assert columns["original"] == [None, "12", "12"] and columns["verdict"] == ["new", *["duplicate"] * 2]


def test_invalid_rows_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """With their number, and the reason of the first."""
    Deduplicator().run([{"text": FERRY}, {"text": " "}, {"text": FERRY, "title": 5}])

    assert capsys.readouterr().err == (
        "2 rows left out, the first: row 2: The row has neither text, html nor title.\n"
    )


def test_columns_that_are_not_used_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """As by the command, with the argument that maps them."""
    table = {"title": ["Evening report"] * 2, "body": ["The bridge is shut.", "Schools lend violins."]}

    assert Deduplicator().run(table)["verdict"] == ["new"] * 2
    assert capsys.readouterr().err.startswith(
        "no column is text, source, published_at; unused: body; map them, e.g. with columns={'text': NAME}\n"
    )
    mapped = Deduplicator(columns={"text": "body"}).run(
        {**table, "published_at": [NOON] * 2, "source": ["a", "b"]}
    )
    assert mapped["verdict"] == ["new"] * 2 and capsys.readouterr().err == ""


def test_rows_without_a_text_are_no_duplicates_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """A frame of two sources of which one has its texts in another column."""
    others = [
        {"title": "Evening report", "body": body} for body in ("The bridge is shut.", "Schools lend violins.")
    ]
    frame = pandas.DataFrame([{"title": "Evening report", "text": FERRY}, *others])

    assert Deduplicator().run(frame)["verdict"] == ["new"] * 3
    assert "rows without a text, none a duplicate: 2 (by_headline)\n" in capsys.readouterr().err
    assert Deduplicator(by_headline=True).run(frame)["verdict"][2] == "duplicate"


def test_within_limits_the_dates_of_a_group() -> None:
    """The same text a week later is new."""
    table = [{"id": n, "text": FERRY, "published_at": NOON + timedelta(days=7 * n)} for n in range(2)]

    assert Deduplicator().run(table)["verdict"] == ["new", "duplicate"]
    assert Deduplicator(within=timedelta(days=3)).run(table)["verdict"] == ["new", "new"]


def test_columns_policy_and_representative_can_be_chosen() -> None:
    """Numbers of numpy are ids; the longest article of a group is its original."""
    table = {"body": [FERRY, f"{FERRY} Tickets cost four crowns."], "id": np.arange(2)}
    columns = {"text": "body"}

    assert Deduplicator(columns=columns).run(table)["original"] == [None, "0"]
    assert Deduplicator(columns=columns, keep="longest").run(table)["original"] == ["1", None]
    assert Deduplicator(columns=columns, policy="hamming").run(table)["group"] == [0, 1]
    strict = Policy(min_containment=1.0, strong_containment=1.0)
    assert Deduplicator(columns=columns, policy=strict).run(table)["distance"][0] is None


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"policy": "loose"}, [FERRY], "policy: 'loose' is not one of verified, hamming"),
        ({"keep": "last"}, [FERRY], "keep: 'last' is not one of earliest, longest, medoid"),
        ({"shingles": "chars"}, [FERRY], "shingles: 'chars' is not one of words, letters"),
        ({"processes": -1}, [FERRY], "processes: -1 is not 0"),
        ({"within": "7d"}, [FERRY], "within: '7d' is not a span"),
        ({"columns": {"body": "text"}}, [FERRY], "'body' is not one of id, title"),
        ({}, [{"text": object()}], "a value of type object"),
    ],
)
def test_errors_name_what_is_wrong(options: dict[str, Any], table: list[Any], message: str) -> None:
    """Before any work is done."""
    with pytest.raises(InvalidInput, match=message):
        Deduplicator(**options).run(table)
