"""Rows of data frames, columns and iterables."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import dask.dataframe
import numpy as np
import pandas
import pyarrow
import pytest

from aggregator.errors import InvalidInput
from aggregator_archive.notebook.tables import article_fields, read_rows

AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
ROWS: list[dict[str, Any]] = [
    {"id": "a", "text": "The ferry is late.", "at": AT},
    {"id": "b", "text": None, "at": None},
]


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        iter(ROWS),
        {name: [row[name] for row in ROWS] for name in ROWS[0]},
        pyarrow.Table.from_pylist(ROWS),
        pyarrow.RecordBatch.from_pylist(ROWS),
        pandas.DataFrame(ROWS),
    ],
    ids=["list", "iterator", "columns", "arrow", "batch", "pandas"],
)
def test_every_kind_of_table_gives_the_same_rows(table: Any) -> None:
    """Missing values are None, times are datetimes."""
    assert [dict(row) for row in read_rows(table)] == ROWS


@pytest.mark.parametrize("make", [list, pandas.Series, pyarrow.array], ids=["list", "series", "array"])
def test_texts_alone_are_rows(make: Callable[[list[str]], Any]) -> None:
    """A column of a data frame as well."""
    assert list(read_rows(make(["one", "two"]))) == [{"text": "one"}, {"text": "two"}]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("a text", "put one text in a list"),
        (5, "got int"),
        ([1], "Row 1 is neither"),
        ({"id": ["a"], "text": []}, "columns of equal length"),
        ({"id": 1}, "columns of equal length"),
        ({"text": "one row"}, "put a single row in a list"),
        (pandas.Series(["a", 1.5]), "Arrow cannot represent"),
        (type("LazyFrame", (), {"collect": list})(), r"LazyFrame has no rows yet; .* its \.collect\(\)"),
        (dask.dataframe.from_dict({"text": ["one"]}, npartitions=1), r"its \.compute\(\)"),
    ],
)
def test_other_values_are_refused(table: Any, message: str) -> None:
    """With what was expected."""
    with pytest.raises(InvalidInput, match=message):
        list(read_rows(table))


def test_columns_with_other_names_are_mapped() -> None:
    """Columns that are no field of an article are left out."""
    rows = [{"body": "one", "id": "a", "note": "x"}]
    assert list(article_fields(rows, {"text": "body"})) == [{"id": "a", "text": "one"}]


def test_values_are_those_of_python() -> None:
    """NaN is no value, also where the rows are no data frame; times of numpy are times."""
    rows = {"title": [math.nan, "A"], "published_at": np.array(["2026-03-17T08:00", "NaT"], "datetime64[ns]")}
    assert list(article_fields(rows, {})) == [
        {"published_at": datetime(2026, 3, 17, 8)},
        {"title": "A", "published_at": None},
    ]


def test_a_column_of_several_kinds_is_no_error_of_all_rows() -> None:
    """Each cell is read for itself, times of pandas, too."""
    times = pandas.to_datetime(["2026-03-17T08:00", None])
    frame = pandas.DataFrame({"title": ["A", 5.0], "text": ["A", "B"], "published_at": times})

    expected = [
        {"title": "A", "text": "A", "published_at": datetime(2026, 3, 17, 8)},
        {"title": 5.0, "text": "B", "published_at": None},
    ]
    assert list(article_fields(frame, {})) == expected
    assert list(article_fields(frame.to_dict("records"), {})) == expected


def test_a_named_column_that_no_row_has() -> None:
    """It would compare headlines alone; a table without rows has no columns."""
    rows = [{"id": "a", "title": "A"}, {"id": "b", "body": "B"}]
    assert [row.get("text") for row in article_fields(rows, {"text": "body"})] == [None, "B"]
    with pytest.raises(
        InvalidInput, match=r"^columns: no row has 'boddy'; the columns are id, title, body\.$"
    ):
        list(article_fields(rows, {"text": "boddy"}))
    assert list(article_fields([], {"text": "boddy"})) == []


def test_a_table_without_anything_to_compare() -> None:
    """The error names the columns and the parameter that maps them."""
    with pytest.raises(InvalidInput, match=r"columns are id, headline, body; .* columns=\{'text': NAME\}\.$"):
        list(article_fields([{"id": "a", "headline": "A", "body": "B"}], {}, ("text", "title")))
