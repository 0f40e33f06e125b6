"""What are the rows of these files, in blocks that can be read again?

JSON Lines (plain or gzip), CSV with a heading, and Parquet (extra ``corpus``). A block is so many rows of one
file; the same files always give the same blocks, so a run that was interrupted knows which ones it has done.
A row stays as it is on disk until a worker decodes it: ``article`` does that, leniently, since archives are
older than any contract.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from aggregator.analysis.article_id import derive_id
from aggregator.domain import Article
from aggregator.errors import AggregatorError, BadInput
from aggregator.offline import jsonl
from aggregator.offline.archive.optional_imports import needed

BLOCK_ROWS = 2_000
BLOCK_BYTES = 16_000_000
MAX_LINE_BYTES = 64 * 1024 * 1024
FIELDS = ("id", "title", "text", "html", "url", "source", "published_at", "lang")
PARQUET_MAGIC = b"PAR1"
NAMED = 8  # columns, in a refusal

Row = bytes | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one file in order; a row that cannot even be cut out of the file is its BadInput."""

    number: int  # over all files, from 0
    file: str
    rows: Sequence[tuple[int, Row | BadInput]]  # with the row's number in the file, from 1


class _Given(msgspec.Struct):
    """The columns that are read; everything else in a row is carried along untouched."""

    id: str | int | None = None
    title: str | None = None
    text: str | None = None
    html: str | None = None
    url: str | None = None
    source: str | None = None
    published_at: Any = None  # str, number or datetime: JSON has no times
    lang: str | None = None


_decode = msgspec.json.Decoder(_Given).decode


def blocks(files: Sequence[str], progress: Callable[[int], None] | None = None) -> Iterator[Block]:
    """All rows of all files, at most BLOCK_ROWS and about BLOCK_BYTES of one file together."""
    number = 0
    for file in files:
        for rows in _grouped(_rows_of(file, progress)):
            yield Block(number, file, rows)
            number += 1


def article(row: Row, columns: Mapping[str, str]) -> Article:
    """The article of one row; ``columns`` says which column holds a field, when not the one of its name.

    Raises BadInput when there is nothing to compare, or a field is of the wrong kind.
    """
    given = _given(row, columns)
    title, text, html = given.title or "", given.text or "", given.html or ""
    if not (title.strip() or text.strip() or html.strip()):
        raise BadInput(f"The row has neither text, html nor title{_other_columns(row, columns)}.")
    return Article(
        id=_id_of(given, title, text or html),
        title=title,
        text=text if text.strip() else "",
        html=html if not text.strip() else "",
        url=given.url or "",
        source=given.source or "",
        published_at_ms=_ms_of(given.published_at),
        lang=given.lang or None,
    )


def as_dict(row: Row) -> dict[str, Any]:
    """All columns of a row that ``article`` has accepted."""
    found = msgspec.json.decode(row) if isinstance(row, bytes) else row
    return cast("dict[str, Any]", found)


def _other_columns(row: Row, columns: Mapping[str, str]) -> str:
    """What to do, for a row that has no column for any of the three: its columns are called otherwise."""
    there = as_dict(row)
    if not there or any(columns.get(name, name) in there for name in ("text", "html", "title")):
        return ""
    return f": its columns are {', '.join(list(there)[:NAMED])}; --column FIELD=NAME says which holds what"


def _given(row: Row, columns: Mapping[str, str]) -> _Given:
    try:
        if isinstance(row, bytes) and not columns:
            return _decode(row)
        full = as_dict(row)
        if not isinstance(full, dict):
            raise BadInput(f"Expected a JSON object, found {type(full).__name__}.")
        return msgspec.convert({name: full.get(columns.get(name, name)) for name in FIELDS}, _Given)
    except msgspec.MsgspecError as error:
        raise BadInput(f"The row cannot be read: {error}.") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"The row cannot be read: {type(error).__name__}.") from None


def _id_of(given: _Given, title: str, text: str) -> str:
    if given.id is not None and given.id != "":
        return str(given.id)
    try:
        return derive_id(None, given.url or "", title, text)
    except AggregatorError:  # an address that is none: the content still names the row
        return derive_id(None, "", title, text)


def _ms_of(when: Any) -> int | None:
    """Milliseconds since 1970 UTC; times without a zone are taken as UTC, numbers as seconds (or ms)."""
    if when is None or when == "":
        return None
    if isinstance(when, int | float):
        return int(when if abs(when) > 1e11 else when * 1000)
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when.strip())
        except ValueError:
            raise BadInput(
                f"published_at: {when[:40]!r} is not an ISO 8601 time.", field="published_at"
            ) from None
    if not isinstance(when, datetime):
        raise BadInput(f"published_at: expected a time, found {type(when).__name__}.", field="published_at")
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def _grouped(rows: Iterable[tuple[int, Row | BadInput]]) -> Iterator[list[tuple[int, Row | BadInput]]]:
    group: list[tuple[int, Row | BadInput]] = []
    size = 0
    for at, row in rows:
        group.append((at, row))
        size += len(row) if isinstance(row, bytes) else 1_000
        if len(group) == BLOCK_ROWS or size > BLOCK_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _rows_of(file: str, progress: Callable[[int], None] | None) -> Iterator[tuple[int, Row | BadInput]]:
    if Path(file).name.lower().endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        return _csv_rows(file, progress)
    if file != jsonl.STDIN and _starts_with(file, PARQUET_MAGIC):
        return _parquet_rows(file, progress)
    return _json_rows(file, progress)


def _json_rows(file: str, progress: Callable[[int], None] | None) -> Iterator[tuple[int, Row | BadInput]]:
    for line in jsonl.lines([file], max_line_bytes=MAX_LINE_BYTES, progress=progress):
        yield line.number, line.error if line.error is not None else line.data


def _csv_rows(file: str, progress: Callable[[int], None] | None) -> Iterator[tuple[int, Row | BadInput]]:
    csv.field_size_limit(MAX_LINE_BYTES)
    with open(file, "rb") as raw:
        content = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == jsonl.GZIP_MAGIC else raw
        text = io.TextIOWrapper(cast(BinaryIO, content), "utf-8-sig", errors="replace", newline="")
        reader = csv.DictReader(text, delimiter="\t" if ".tsv" in Path(file).name.lower() else ",")
        number = told = 0
        while (row := _next_row(reader)) is not None:
            number += 1
            yield number, row
            if progress and number % 1024 == 0:
                progress(raw.tell() - told)
                told = raw.tell()
        if progress:
            progress(raw.tell() - told)


def _next_row(reader: csv.DictReader[str]) -> Row | BadInput | None:
    """The next row, what is wrong with it, or None at the end."""
    try:
        row = next(reader, None)
    except (csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        if not isinstance(error, csv.Error):
            return None
        return BadInput(f"The row is not CSV: {error}.")
    if row is None:
        return None
    if None in row or None in row.values():
        return BadInput("The row has more or fewer values than the heading has names.")
    return {name: value or None for name, value in row.items()}


def _parquet_rows(file: str, progress: Callable[[int], None] | None) -> Iterator[tuple[int, Row | BadInput]]:
    parquet = needed("pyarrow.parquet", "corpus", "Reading Parquet")
    try:
        opened = parquet.ParquetFile(file)
        share = Path(file).stat().st_size / max(1, opened.metadata.num_rows)
        number = 0
        for batch in opened.iter_batches(batch_size=BLOCK_ROWS):
            for row in batch.to_pylist():
                number += 1
                yield number, row
            if progress:
                progress(round(share * len(batch)))
    except OSError as error:  # pyarrow's errors of a damaged file are OSErrors
        yield 0, BadInput(f"The Parquet file is damaged from here on ({error}).")


def _starts_with(file: str, magic: bytes) -> bool:
    with open(file, "rb") as raw:
        return raw.read(len(magic)) == magic
