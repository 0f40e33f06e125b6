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
from aggregator.errors import AggregatorError, InvalidInput
from aggregator.offline import jsonl
from aggregator.offline.archive.optional_imports import import_optional

MAX_BLOCK_ROWS = 2_000
MAX_BLOCK_BYTES = 16_000_000
MAX_LINE_BYTES = 64 * 1024 * 1024
ARTICLE_FIELDS = ("id", "title", "text", "html", "url", "source", "published_at", "lang")
PARQUET_MAGIC = b"PAR1"
MAX_NAMED_COLUMNS = 8  # columns, in a refusal

Row = bytes | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one file in order; a row that cannot even be cut out of the file is its BadInput."""

    number: int  # over all files, from 0
    file: str
    rows: Sequence[tuple[int, Row | InvalidInput]]  # with the row's number in the file, from 1


class _ArticleColumns(msgspec.Struct):
    """The columns that are read; everything else in a row is carried along untouched."""

    id: str | int | None = None
    title: str | None = None
    text: str | None = None
    html: str | None = None
    url: str | None = None
    source: str | None = None
    published_at: Any = None  # str, number or datetime: JSON has no times
    lang: str | None = None


_decode = msgspec.json.Decoder(_ArticleColumns).decode


def read_blocks(files: Sequence[str], progress: Callable[[int], None] | None = None) -> Iterator[Block]:
    """All rows of all files, at most BLOCK_ROWS and about BLOCK_BYTES of one file together."""
    number = 0
    for file in files:
        for rows in _group_into_blocks(_read_rows(file, progress)):
            yield Block(number, file, rows)
            number += 1


def parse_article(row: Row, column_names: Mapping[str, str]) -> Article:
    """The article of one row; ``columns`` says which column holds a field, when not the one of its name.

    Raises BadInput when there is nothing to compare, or a field is of the wrong kind.
    """
    given = _decode_row(row, column_names)
    title, text, html = given.title or "", given.text or "", given.html or ""
    if not (title.strip() or text.strip() or html.strip()):
        raise InvalidInput(f"The row has neither text, html nor title{_column_hint(row, column_names)}.")
    return Article(
        id=_article_id(given, title, text or html),
        title=title,
        text=text if text.strip() else "",
        html=html if not text.strip() else "",
        url=given.url or "",
        source=given.source or "",
        published_at_ms=_timestamp_ms(given.published_at),
        lang=given.lang or None,
    )


def row_as_dict(row: Row) -> dict[str, Any]:
    """All columns of a row that ``article`` has accepted."""
    found = msgspec.json.decode(row) if isinstance(row, bytes) else row
    return cast("dict[str, Any]", found)


def _column_hint(row: Row, column_names: Mapping[str, str]) -> str:
    """What to do, for a row that has no column for any of the three: its columns are called otherwise."""
    there = row_as_dict(row)
    if not there or any(column_names.get(name, name) in there for name in ("text", "html", "title")):
        return ""
    return f": its columns are {', '.join(list(there)[:MAX_NAMED_COLUMNS])}; --column FIELD=NAME says which holds what"


def _decode_row(row: Row, column_names: Mapping[str, str]) -> _ArticleColumns:
    try:
        if isinstance(row, bytes) and not column_names:
            return _decode(row)
        full = row_as_dict(row)
        if not isinstance(full, dict):
            raise InvalidInput(f"Expected a JSON object, found {type(full).__name__}.")
        return msgspec.convert(
            {name: full.get(column_names.get(name, name)) for name in ARTICLE_FIELDS}, _ArticleColumns
        )
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"The row cannot be read: {error}.") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"The row cannot be read: {type(error).__name__}.") from None


def _article_id(given: _ArticleColumns, title: str, text: str) -> str:
    if given.id is not None and given.id != "":
        return str(given.id)
    try:
        return derive_id(None, given.url or "", title, text)
    except AggregatorError:  # an address that is none: the content still names the row
        return derive_id(None, "", title, text)


def _timestamp_ms(value: Any) -> int | None:
    """Milliseconds since 1970 UTC; times without a zone are taken as UTC, numbers as seconds (or ms)."""
    if value is None or value == "":
        return None
    if isinstance(value, int | float):
        return int(value if abs(value) > 1e11 else value * 1000)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidInput(
                f"published_at: {value[:40]!r} is not an ISO 8601 time.", field="published_at"
            ) from None
    if not isinstance(value, datetime):
        raise InvalidInput(
            f"published_at: expected a time, found {type(value).__name__}.", field="published_at"
        )
    return round((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)


def _group_into_blocks(
    rows: Iterable[tuple[int, Row | InvalidInput]],
) -> Iterator[list[tuple[int, Row | InvalidInput]]]:
    group: list[tuple[int, Row | InvalidInput]] = []
    size = 0
    for at, row in rows:
        group.append((at, row))
        size += len(row) if isinstance(row, bytes) else 1_000
        if len(group) == MAX_BLOCK_ROWS or size > MAX_BLOCK_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _read_rows(file: str, progress: Callable[[int], None] | None) -> Iterator[tuple[int, Row | InvalidInput]]:
    if Path(file).name.lower().endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        return _csv_rows(file, progress)
    if file != jsonl.STDIN and _starts_with(file, PARQUET_MAGIC):
        return _parquet_rows(file, progress)
    return _json_rows(file, progress)


def _json_rows(file: str, progress: Callable[[int], None] | None) -> Iterator[tuple[int, Row | InvalidInput]]:
    for line in jsonl.read_lines([file], max_line_bytes=MAX_LINE_BYTES, progress=progress):
        yield line.number, line.error if line.error is not None else line.data


def _csv_rows(file: str, progress: Callable[[int], None] | None) -> Iterator[tuple[int, Row | InvalidInput]]:
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


def _next_row(reader: csv.DictReader[str]) -> Row | InvalidInput | None:
    """The next row, what is wrong with it, or None at the end."""
    try:
        row = next(reader, None)
    except (csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        if not isinstance(error, csv.Error):
            return None
        return InvalidInput(f"The row is not CSV: {error}.")
    if row is None:
        return None
    if None in row or None in row.values():
        return InvalidInput("The row has more or fewer values than the heading has names.")
    return {name: value or None for name, value in row.items()}


def _parquet_rows(
    file: str, progress: Callable[[int], None] | None
) -> Iterator[tuple[int, Row | InvalidInput]]:
    parquet = import_optional("pyarrow.parquet", "corpus", "Reading Parquet")
    try:
        opened = parquet.ParquetFile(file)
        share = Path(file).stat().st_size / max(1, opened.metadata.num_rows)
        number = 0
        for batch in opened.iter_batches(batch_size=MAX_BLOCK_ROWS):
            for row in batch.to_pylist():
                number += 1
                yield number, row
            if progress:
                progress(round(share * len(batch)))
    except OSError as error:  # pyarrow's errors of a damaged file are OSErrors
        yield 0, InvalidInput(f"The Parquet file is damaged from here on ({error}).")


def _starts_with(file: str, magic: bytes) -> bool:
    with open(file, "rb") as raw:
        return raw.read(len(magic)) == magic
