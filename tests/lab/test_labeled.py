"""Articles of evaluation files and their labels."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas
import pyarrow.parquet
import pytest

from aggregator.errors import InvalidInput
from aggregator_archive.rows import parse_article
from aggregator_lab.labeled import load_articles, load_labeled, two_valued


def file_of(directory: Path, *rows: dict[str, Any]) -> str:
    """A JSON lines file with these rows."""
    path = directory / "gold.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def row(id_: str = "a1", **fields: Any) -> dict[str, Any]:
    """A valid row."""
    return {"id": id_, "text": "The ferry is late.", "cluster": "ferry", **fields}


def test_other_columns_are_ignored(tmp_path: Path) -> None:
    """Evaluation files may have notes; fields of the contract are validated."""
    (labeled,) = load_labeled([file_of(tmp_path, row(note="copied", source="one.example"))])

    assert (labeled.article.id, labeled.article.source, labeled.label) == ("a1", "one.example", "ferry")
    assert labeled.article.text == "The ferry is late."


@pytest.mark.parametrize("columns", [{"id": "nr", "text": "inhalt"}, [("id", "nr"), ("text", "inhalt")]])
def test_columns_are_a_mapping_or_pairs(columns: Any, tmp_path: Path) -> None:
    """As `Deduplicator` takes them, or as the command line has them."""
    path = tmp_path / "own.csv"
    path.write_text("nr,inhalt,cluster\n7,The ferry is late.,ferry\n", encoding="utf-8")

    (labeled,) = load_labeled([str(path)], columns)
    assert (labeled.article.id, labeled.article.text) == ("7", "The ferry is late.")
    assert load_articles([str(path)], columns) == [labeled.article]
    with pytest.raises(InvalidInput, match="no column 'text' for title; the columns are nr, inhalt, cluster"):
        load_labeled([str(path)], dict(columns) | {"title": "text"})


@pytest.mark.parametrize(("label", "expected"), [("ferry", "ferry"), (7, "7"), (0, "0"), (7.0, "7")])
def test_numbers_are_labels(tmp_path: Path, label: object, expected: str) -> None:
    """Zero included, and the floats of a column of pandas that lacks one."""
    assert load_labeled([file_of(tmp_path, row(cluster=label))])[0].label == expected


@pytest.mark.parametrize(
    ("spellings", "expected"),
    [
        ([True, 1, 1.0, "1", "true", "True ", "TRUE", "yes", "y", "t"], True),
        ([False, 0, 0.0, "0", "0.0", "false", "No", "n", "f"], False),
        ([None, "", "maybe", 2, -1, "10", [True]], None),
    ],
)
def test_judgments_have_the_usual_spellings(spellings: list[object], expected: bool | None) -> None:
    """Of JSON, CSV, pandas and people."""
    assert {two_valued(value) for value in spellings} == {expected}


@pytest.mark.parametrize("label", [None, "", True, ["ferry"]])
def test_a_row_without_a_label_costs_no_other(
    tmp_path: Path, label: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named by its file and position, since ids need not be unique."""
    file = file_of(tmp_path, row(), row("a2", cluster=label), row("a3"), row("a4", text=""))

    assert [item.article.id for item in load_labeled([file])] == ["a1", "a3"]
    assert capsys.readouterr().err == (
        f"2 rows left out, the first: {file}, row 2: no `cluster`, the same for duplicates: the cell "
        "is empty, or no text or number.\n"
    )


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("cluster", "the cell is empty"),
        ("group", "columns are id, text, group; map one with --column cluster="),
    ],
)
def test_an_empty_cell_of_a_label_is_no_missing_column(tmp_path: Path, header: str, message: str) -> None:
    """Only another header can be mapped."""
    path = tmp_path / "gold.csv"
    path.write_text(f"id,text,{header}\n1,The ferry is late.,\n")

    with pytest.raises(
        InvalidInput, match=f"gold.csv, row 1: no `cluster`, the same for duplicates: .*{message}"
    ):
        load_labeled([str(path)])


def test_an_id_that_occurs_twice_is_rejected_unless_allowed(tmp_path: Path) -> None:
    """A service would take the second article for a new version of the first."""
    file = file_of(tmp_path, row(), row("a2"), row())

    with pytest.raises(
        InvalidInput, match=r": the id 'a1' is used by 2 articles; .* --column id=NAME"
    ) as caught:
        load_labeled([file])
    assert str(caught.value).startswith(f"{file}: ")
    assert [item.article.id for item in load_labeled([file], unique_ids=False)] == ["a1", "a2", "a1"]
    unnamed = [{name: value for name, value in row().items() if name != "id"}] * 2
    assert [item.article.id for item in load_labeled([file_of(tmp_path, *unnamed)])] == ["row 1", "row 2"]


def test_labels_are_not_needed_for_articles_alone(tmp_path: Path) -> None:
    """Files without rows are empty, not an error."""
    unlabeled = {"id": "a1", "title": "Ferry late"}

    assert [article.title for article in load_articles([file_of(tmp_path, unlabeled)])] == ["Ferry late"]
    assert load_articles([file_of(tmp_path)]) == []
    with pytest.raises(InvalidInput, match="no articles found"):
        load_labeled([file_of(tmp_path)])


def test_an_invalid_article_is_named_with_the_wrong_field(tmp_path: Path) -> None:
    """If no other is left."""
    with pytest.raises(InvalidInput, match=r"gold\.jsonl, row 1: The row cannot be read: .*\$\.title"):
        load_articles([file_of(tmp_path, row(title=5))])


def test_articles_are_read_as_for_dedupe(tmp_path: Path) -> None:
    """Numbers are ids, as pandas and Parquet have them, and no limit of the HTTP API holds."""
    archived = row(title="long " * 500, url="not an address") | {"id": 7}

    assert [a.article for a in load_labeled([file_of(tmp_path, archived)])] == [parse_article(archived, {})]


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
def test_every_format_of_dedupe_is_read(tmp_path: Path, format: str) -> None:
    """With the same articles and labels; empty cells are absent fields."""
    frame = pandas.DataFrame([row(published_at="2026-06-01T12:00:00Z"), row("a2", title="Late", url=None)])
    path = tmp_path / f"gold.{format}"
    if format == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif format == "parquet":
        frame["published_at"] = pandas.to_datetime(frame["published_at"])
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if format == "tsv" else ",")

    first, second = load_labeled([str(path)])

    assert (first.label, first.article.text) == ("ferry", "The ferry is late.")
    assert first.article.published_at_ms == 1_780_315_200_000
    assert (second.article.title, second.article.published_at_ms) == ("Late", None)


def test_a_row_that_cannot_be_read_is_named_with_its_file(tmp_path: Path) -> None:
    """Also of CSV."""
    path = tmp_path / "gold.csv"
    path.write_text("id,text,cluster\na,b\n")

    with pytest.raises(InvalidInput, match=r"gold\.csv, row 1: The row has more or fewer values"):
        load_articles([str(path)])


@pytest.mark.parametrize(
    "stated", ["2026-03-17", "2026-03-17T08:00:00", "Tue, 17 Mar 2026 08:00:00 GMT", 1773734400, "1773734400"]
)
def test_dates_are_read_as_for_dedupe(tmp_path: Path, stated: object) -> None:
    """One owner reads the dates of all tables."""
    (labeled,) = load_labeled([file_of(tmp_path, row(published_at=stated))])

    assert labeled.article.published_at_ms is not None
    assert labeled.article == load_articles([file_of(tmp_path, row(published_at=stated))])[0]
    assert labeled.article.published_at_ms == parse_article(row(published_at=stated), {}).published_at_ms


def test_columns_of_dates_of_parquet_are_read(tmp_path: Path) -> None:
    """Times without a zone and days, as pandas and pyarrow write them."""
    at = datetime(2026, 3, 17, 8)
    columns = {"id": ["a", "b"], "text": ["A", "B"], "cluster": ["x", "y"]}
    for name, values in {"times": [at, None], "days": [at.date(), None]}.items():
        pyarrow.parquet.write_table(
            pyarrow.table({**columns, "published_at": values}), tmp_path / f"{name}.parquet"
        )

    times, days = (load_articles([str(tmp_path / f"{name}.parquet")]) for name in ("times", "days"))
    at_ms = round(at.replace(tzinfo=UTC).timestamp() * 1000)
    assert [article.published_at_ms for article in times] == [at_ms, None]
    assert [article.published_at_ms for article in days] == [at_ms - 8 * 3_600_000, None]


def test_dates_that_cannot_be_read_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rows stay, undated; a row without a date states none."""
    rows = [row("a", published_at="soon"), row("b", published_at="2026-03-17"), row("c")]

    assert [item.article.published_at_ms is None for item in load_labeled([file_of(tmp_path, *rows)])] == [
        True, False, True,
    ]  # fmt: skip
    assert capsys.readouterr().err == (
        "1 of 2 dates could not be read, e.g. 'soon'; write them as 2026-01-05T03:02:00Z or 2026-01-05; "
        "these rows are undated\n"
    )
