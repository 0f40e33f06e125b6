"""Rows of the tables that notebooks use: iterables, columns, pandas, Polars and Arrow (PyCapsule)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aggregator.errors import InvalidInput
from aggregator_archive.optional_imports import import_optional
from aggregator_archive.rows import CONTENT_FIELDS

Row = Mapping[str, Any]
Columns = dict[str, list[Any]]  # name -> one value per row


def read_rows(table: Any) -> Iterator[Row]:
    """Yield the rows of a table in order; a text alone is a row with the field ``text``.

    ``table``: an object with ``__arrow_c_stream__`` (pandas, Polars, PyArrow), a mapping of columns of equal
    length, or an iterable of mappings or texts. Raises InvalidInput for anything else, and
    ConfigurationError for a data frame when pyarrow is not installed.
    """
    if hasattr(table, "to_pylist"):  # PyArrow, also its arrays
        return _plain_rows(table.to_pylist())
    if hasattr(table, "__arrow_c_stream__"):
        return _arrow_rows(table)
    if isinstance(table, Mapping):
        return _rows_of_columns(table)
    if isinstance(table, str | bytes) or not isinstance(table, Iterable):
        raise InvalidInput(
            f"Expected rows, columns or a data frame, got {type(table).__name__}; put one text in a list."
        )
    return _plain_rows(table)


def rename_fields(rows: Iterable[Row], columns: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows with ``columns``, field -> name of its column, applied; other fields are unchanged.

    Raises InvalidInput at the end if no row had one of the columns, or any with something to compare.
    """
    missing, seen, has_content = set(columns.values()), dict[str, None](), False
    for row in rows:
        if missing or not has_content:
            missing.difference_update(row)
            seen.update(dict.fromkeys(row))
            has_content = has_content or any(columns.get(field, field) in row for field in CONTENT_FIELDS)
        yield {**row, **{field: row.get(name) for field, name in columns.items()}} if columns else row
    if missing and seen:
        raise InvalidInput(f"columns: no row has {min(missing)!r}; the columns are {', '.join(seen)}.")
    if seen and not has_content:
        raise InvalidInput(
            f"columns: no row has text, html or title; the columns are {', '.join(seen)}; name the one with "
            "the text by columns={'text': NAME}."
        )


def _arrow_rows(table: Any) -> Iterator[Row]:
    pyarrow = import_optional("pyarrow", "newsdedup-archive[parquet]", "Reading data frames")
    try:
        if hasattr(table, "dtype"):  # of one column; a data frame has several
            rows = pyarrow.chunked_array(table).to_pylist()
        else:
            rows = (
                row for batch in pyarrow.RecordBatchReader.from_stream(table) for row in batch.to_pylist()
            )
        yield from _plain_rows(rows)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise InvalidInput(f"The data frame has a column that Arrow cannot represent: {error}.") from None


def _rows_of_columns(table: Mapping[str, Any]) -> Iterator[Row]:
    names = list(table)
    try:
        yield from (dict(zip(names, values, strict=True)) for values in zip(*table.values(), strict=True))
    except (ValueError, TypeError):
        raise InvalidInput(
            "A mapping must have columns of equal length as its values; put a single row in a list."
        ) from None


def _plain_rows(table: Iterable[Any]) -> Iterator[Row]:
    for number, row in enumerate(table, 1):
        if isinstance(row, Mapping):
            yield row
        elif isinstance(row, str) or row is None:
            yield {"text": row}
        else:
            raise InvalidInput(f"Row {number} is neither a mapping nor a text but {type(row).__name__}.")
