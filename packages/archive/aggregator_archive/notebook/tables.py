"""Rows of the tables that notebooks use: iterables, columns, pandas, Polars and Arrow (PyCapsule)."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import numpy as np

from aggregator.errors import InvalidInput
from aggregator_archive.input_check import unused_columns
from aggregator_archive.optional_imports import import_optional
from aggregator_archive.rows import ARTICLE_FIELDS

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
    if lazy := next((name for name in ("collect", "compute") if hasattr(table, name)), ""):  # Polars, Dask
        raise InvalidInput(f"{type(table).__name__} has no rows yet; pass the result of its .{lazy}().")
    if isinstance(table, str | bytes) or not isinstance(table, Iterable):
        raise InvalidInput(
            f"Expected rows, columns or a data frame, got {type(table).__name__}; put one text in a list."
        )
    return _plain_rows(table)


def article_fields(
    table: Any, columns: Mapping[str, str], *needed: Sequence[str], compared: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield the fields of an article of each row (``read_rows``), with values of Python; NaN is none.

    ``columns``: field -> name of its column, if it has another name; ``needed``: groups of fields. Raises
    InvalidInput at the end if no row had one of the columns, or any field of a group. ``compared``: fields
    that are read; there the columns are reported that are not used although one of these has none.
    """
    seen = dict[str, None]()
    for row in read_rows(table):
        seen.update(dict.fromkeys(row))
        given = {f: row.get(columns.get(f, f)) for f in ARTICLE_FIELDS if columns.get(f, f) in row}
        fields = msgspec.to_builtins(given, builtin_types=(datetime,), enc_hook=_plain_value)
        yield {name: value for name, value in fields.items() if value == value}  # noqa: PLR0124  # NaN
    if seen and (missing := sorted({*columns.values()} - seen.keys())):
        raise InvalidInput(f"columns: no row has {missing[0]!r}; the columns are {', '.join(seen)}.")
    if seen and (lacking := [g for g in needed if not any(columns.get(f, f) in seen for f in g)]):
        raise InvalidInput(
            f"columns: no row has {' or '.join(lacking[0])}; the columns are {', '.join(seen)}; name yours "
            f"by columns={{{lacking[0][0]!r}: NAME}}."
        )
    if compared and (remark := unused_columns(list(seen), columns, "columns={{'{}': NAME}}", compared)):
        print(remark, file=sys.stderr)


def span_ms(name: str, span: object) -> int:
    """The milliseconds of a span of time above 0. Raises InvalidInput for anything else."""
    if not isinstance(span, timedelta) or span <= timedelta():
        raise InvalidInput(f"{name}: {span!r} is not a span above 0 such as timedelta(days=7).")
    return round(span.total_seconds() * 1000)


def _plain_value(value: Any) -> Any:
    """A value of numpy or pandas as one of Python."""
    if isinstance(value, datetime):  # pandas.Timestamp, or NaT, which is none
        return datetime.fromisoformat(value.isoformat()) if value == value else None  # noqa: PLR0124
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    if isinstance(value, np.generic):
        return value.item()
    raise InvalidInput(f"A field has a value of type {type(value).__name__}; expected text, number or time.")


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
        if hasattr(table, "itertuples"):  # pandas, with values of several kinds in a column
            yield from table.to_dict("records")
            return
        raise InvalidInput(f"The data frame has a column that Arrow cannot represent: {error}.") from None


def _rows_of_columns(table: Mapping[str, Any]) -> Iterator[Row]:
    names = list(table)
    try:
        if any(isinstance(values, str | bytes) for values in table.values()):
            raise TypeError("a text is no column")
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
