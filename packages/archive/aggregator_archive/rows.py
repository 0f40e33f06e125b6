"""Input rows of an archive in reproducible blocks: JSON Lines (also gzip), CSV with a header, and Parquet.

The same files always give the same blocks, so an interrupted run knows which are done. Rows are decoded
leniently: archives do not follow the service's contract.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import json
import re
import sys
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import msgspec

from aggregator import jsonl
from aggregator.analysis.article_id import derive_id
from aggregator.analysis.source import site_of
from aggregator.domain import Article
from aggregator.errors import AggregatorError, InvalidInput
from aggregator_archive.optional_imports import import_optional
from aggregator_client.dates import parse_feed_date
from aggregator_client.surrogates import whole_json

MAX_BLOCK_ROWS = 2_000
MAX_BLOCK_BYTES = 16_000_000
MAX_LINE_BYTES = 64 * 1024 * 1024
PARQUET_MAGIC = b"PAR1"
PYARROW = ("pyarrow.parquet", "newsdedup-archive[parquet]", "Parquet")  # arguments of import_optional
DAMAGED_PARQUET = (OSError, ValueError)  # errors of pyarrow
DAMAGED_GZIP = (EOFError, gzip.BadGzipFile, zlib.error)
CONTENT_FIELDS = ("text", "html", "title")
MAX_NAMED_COLUMNS, MAX_NAME_CHARACTERS = 8, 40  # in an error message
HEAD_BYTES = 64 * 1024
_BEFORE_HEADER = re.compile(r'\s*$|"?sep=.', re.IGNORECASE).match  # lines of CSV files

Row = bytes | dict[str, Any]  # a line of JSON, or a decoded row
Columns = Mapping[str, str] | Sequence[tuple[str, str]]  # fields of rows, each with its column
RowOrError = Row | InvalidInput
NumberedRow = tuple[int, RowOrError]  # with the row's number in its file, from 1
Parsed = TypeVar("Parsed")
ProgressCallback = Callable[[int], None]  # is called with the number of bytes read since the last call


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of one file; a row that cannot be read from the file is an InvalidInput."""

    number: int  # over all files, from 0
    file: str
    rows: Sequence[NumberedRow]


class _ArticleColumns(msgspec.Struct):
    """The columns that are read; other columns of a row are only copied."""

    id: str | int | float | None = None
    title: str | None = None
    text: str | None = None
    html: str | None = None
    url: str | None = None
    source: str | None = None
    published_at: Any = None  # str, number, or (Parquet) datetime
    lang: str | None = None


ARTICLE_FIELDS = _ArticleColumns.__struct_fields__

_decode = msgspec.json.Decoder(_ArticleColumns).decode

# Bytes of a CSV file that are not UTF-8 are read as the usual older encoding of Western languages.
LEGACY_ENCODING, _LEGACY_ERRORS = "windows-1252", "aggregator_archive.windows-1252"


def _decode_legacy(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode(LEGACY_ENCODING, "replace"), error.end


codecs.register_error(_LEGACY_ERRORS, _decode_legacy)


def read_blocks(files: Sequence[str], progress: ProgressCallback | None = None) -> Iterator[Block]:
    """All rows of all files, in blocks of at most ``MAX_BLOCK_ROWS`` rows and about ``MAX_BLOCK_BYTES``."""
    blocks = ((file, rows) for file in files for rows in _group_into_blocks(_read_rows(file, progress)))
    return (Block(number, *block) for number, block in enumerate(blocks))


def blocks_of_rows(rows: Iterable[dict[str, Any]]) -> Iterator[Block]:
    """The blocks of a table in memory."""
    return (Block(number, "", group) for number, group in enumerate(_group_into_blocks(enumerate(rows, 1))))


def numbered_rows(files: Sequence[str]) -> Iterator[tuple[str, int, RowOrError]]:
    """The file, the number in it and the content of every row. ``files``: names, or one."""
    files = [files] if isinstance(files, str) else files
    return ((block.file, number, row) for block in read_blocks(files) for number, row in block.rows)


def parse_rows(
    files: Sequence[str],
    columns: Columns,
    parse: Callable[[int, dict[str, Any]], Parsed],
    report: bool = True,
) -> Iterator[Parsed]:
    """Yield what ``parse`` makes of the position, from 1 over all files, and the content of each row.

    ``columns``: fields that are added to each row, and the column that has the value. Empty cells of CSV and
    Parquet are None, times ISO 8601 texts. Rows that cannot be read, and those for which ``parse`` raises
    InvalidInput, are left out; with ``report`` their number and the first are printed on stderr. Raises
    InvalidInput at the end if all were.
    """
    invalid, first, parsed = 0, "", 0
    try:
        for position, (file, number, row) in enumerate(numbered_rows(files), 1):
            try:
                given = {n: v.isoformat() if isinstance(v, date) else v for n, v in row_as_dict(row).items()}
                given |= {field: given[name] for field, name in dict(columns).items() if name in given}
                result = parse(position, given)
            except InvalidInput as error:
                where = "standard input" if file == jsonl.STDIN else file
                invalid, first = invalid + 1, first or f"{where}, row {number}: {error}"
                continue
            parsed += 1
            yield result
    finally:  # also if the caller needs no more
        if invalid and parsed and report:
            print(f"{counted(invalid, 'row')} left out, the first: {first}", file=sys.stderr)
    if invalid and not parsed:
        raise InvalidInput(first)


def counted(count: int, noun: str) -> str:
    """The number and its noun: 1 row, 2,000 rows."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def read_rows(files: Sequence[str], columns: Columns = (), report: bool = True) -> Iterator[dict[str, Any]]:
    """Yield every row as a mapping (``parse_rows``)."""
    return parse_rows(files, columns, lambda _, row: row, report)


def column_of(field: str, columns: Container[str], column_names: Mapping[str, str]) -> str:
    """The column of a field in a row or table with these columns: of ``column_names`` if it is one of them.

    Else the column named like the field, unless another field has that one.
    """
    named = column_names.get(field, field)
    return named if named in columns or field in column_names.values() else field


def column_hint(columns: Iterable[str], field: str) -> str:
    """The end of a sentence on a row without a field: that it is empty, or how to map one of the columns."""
    if field in columns:
        return ": the cell is empty, or no text or number."
    return f": the columns are {listed(list(columns))}; map one with --column {field}=NAME."


def listed(columns: Sequence[str]) -> str:
    """The first columns, separated by commas; of what is too long for a name, the beginning."""
    more = ", ..." if len(columns) > MAX_NAMED_COLUMNS else ""
    return ", ".join(name[:MAX_NAME_CHARACTERS] for name in columns[:MAX_NAMED_COLUMNS]) + more


def parse_article(row: RowOrError, column_names: Mapping[str, str]) -> Article:
    """The article of one row; ``column_names``: column of each field that is not named like its column.

    A date that cannot be read for certain is none. Raises InvalidInput if there is nothing to compare or a
    field has the wrong type, and the error that a row is.
    """
    given = _decode_row(row, column_names)
    title, text, html = given.title or "", given.text or "", given.html or ""
    if not (title.strip() or text.strip() or html.strip()):
        raise InvalidInput("The row has neither text, html nor title" + _column_hint(row, column_names))
    return Article(
        id=_article_id(given, title, text or html),
        title=title,
        text=text if text.strip() else "",
        html=html if not text.strip() else "",
        url=given.url or "",
        source=given.source or site_of(given.url or ""),
        published_at_ms=parse_time_ms(given.published_at),
        lang=given.lang or None,
    )


def id_text(value: object) -> str:
    """The text of an id or label; empty if there is none. pandas has numbers as floats if one is missing."""
    if isinstance(value, float):
        value = int(value) if value.is_integer() else value if value == value else None  # noqa: PLR0124  # NaN
    return "" if value is None else str(value)


def row_as_dict(row: RowOrError) -> dict[str, Any]:
    """All columns of a row. Raises InvalidInput if it is one, or no JSON object."""
    if isinstance(row, InvalidInput):
        raise row
    try:
        decoded = _decode_json(row) if isinstance(row, bytes) else row
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The row is not JSON in UTF-8 ({error}); expected one object per line.") from None
    if not isinstance(decoded, dict):
        raise InvalidInput(f"Expected a JSON object, found {type(decoded).__name__}.")
    return decoded


def _decode_json(row: bytes) -> Any:
    """The value of a line; NaN, Python's none, and halves of surrogate pairs do not cost the row."""
    try:
        return msgspec.json.decode(row)
    except msgspec.MsgspecError:
        whole = whole_json(row)
        if whole == row and b"NaN" not in row and b"Infinity" not in row:
            raise
        with suppress(ValueError):
            return json.loads(whole, parse_constant=lambda _: None)
        raise


def _column_hint(row: RowOrError, column_names: Mapping[str, str]) -> str:
    present = row_as_dict(row)
    if not present or any(column_of(name, present, column_names) in present for name in CONTENT_FIELDS):
        return "."
    lists = [n for n, v in present.items() if isinstance(v, list) and v and isinstance(v[0], dict)]
    if lists:
        return f"; its {lists[0]!r} is a list: give each object as a row (of JSON: `jq -c '.{lists[0]}[]'`)."
    return column_hint(present, "text")


def _decode_row(row: RowOrError, column_names: Mapping[str, str]) -> _ArticleColumns:
    if isinstance(row, bytes) and not column_names:
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):  # else decoded leniently
            return _decode(row)
    full = row_as_dict(row)
    try:
        return msgspec.convert(
            {name: full.get(column_of(name, full, column_names)) for name in ARTICLE_FIELDS}, _ArticleColumns
        )
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"The row cannot be read: {error}.") from None


def _article_id(given: _ArticleColumns, title: str, text: str) -> str:
    if id_ := id_text(given.id):
        return id_
    try:
        return derive_id(None, given.url or "", title, text)
    except AggregatorError:  # invalid URL: derive the id from the content
        return derive_id(None, "", title, text)


def parse_time_ms(value: object) -> int | None:
    """Milliseconds since 1970 UTC; None if it cannot be read (``parse_feed_date``). Without zone: UTC."""
    at = parse_feed_date(value, UTC)
    return None if at is None else round(at.timestamp() * 1000)


def _group_into_blocks(rows: Iterable[NumberedRow]) -> Iterator[list[NumberedRow]]:
    group: list[NumberedRow] = []
    size = 0
    for at, row in rows:
        group.append((at, row))
        size += len(row) if isinstance(row, bytes) else 1_000
        if len(group) == MAX_BLOCK_ROWS or size > MAX_BLOCK_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _read_rows(file: str, progress: ProgressCallback | None) -> Iterator[NumberedRow]:
    if is_csv(file):
        return _csv_rows(file, progress)
    if is_parquet(file):
        return _parquet_rows(file, progress)
    lines = jsonl.read_lines([file], max_line_bytes=MAX_LINE_BYTES, progress=progress)
    return ((line.number, line.data if line.error is None else line.error) for line in lines)


def _csv_rows(file: str, progress: ProgressCallback | None) -> Iterator[NumberedRow]:
    with open_csv(file) as (reader, raw, lines):
        reported = 0
        for number in itertools.count(1):
            try:
                row = _next_row(reader, lines)
            except DAMAGED_GZIP:
                yield number, InvalidInput("The gzip data is damaged or truncated from here on.")
                break
            if row is None:
                break
            yield number, row
            if progress and number % 1024 == 0:
                reported = jsonl.report_progress(raw, reported, progress)
        if progress:
            jsonl.report_progress(raw, reported, progress)


def is_csv(file: str) -> bool:
    """Whether the name of a file is that of a CSV or TSV file."""
    return Path(file).name.lower().endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz"))


def is_parquet(file: str) -> bool:
    """Whether a file starts as Parquet does."""
    return file != jsonl.STDIN and read_head(file).startswith(PARQUET_MAGIC)


def read_head(file: str) -> bytes:
    """The first ``HEAD_BYTES`` bytes, decompressed; what can be read of a damaged file."""
    with open_decompressed(file) as (content, _):
        try:
            return content.read(HEAD_BYTES)
        except DAMAGED_GZIP:
            return b""


@contextmanager
def open_decompressed(file: str) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The content of a file, and the file on disk."""
    with open(file, "rb") as raw:
        zipped = raw.peek(2)[:2] == jsonl.GZIP_MAGIC
        yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if zipped else raw, raw


def csv_encoding(file: str) -> str:
    """UTF-16 if the file starts with its byte order mark, or with an ASCII character in it; else UTF-8."""
    start = read_head(file)[:2]
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    return "utf-16-le" if start[1:] == b"\0" else "utf-8-sig"


@contextmanager
def open_csv(file: str) -> Iterator[tuple[csv.DictReader[str], BinaryIO, list[str]]]:
    """Reader of a CSV file with a header, the file on disk, and a list that gets each line, "" at the end.

    UTF-8 or UTF-16; bytes that are not UTF-8 are ``LEGACY_ENCODING``. Columns are separated by tabs if the
    name says so, else by what the header has most of: , ; tab or |. Blank lines and ``sep=;`` of Excel before
    the header are left out, and the space after each separator if the header has one.
    Raises InvalidInput if two columns have one name: a row has one value of each.
    """
    csv.field_size_limit(MAX_LINE_BYTES)
    encoding = csv_encoding(file)
    head = read_head(file).decode(encoding, "replace")
    header = next(itertools.dropwhile(_BEFORE_HEADER, head.splitlines()), "")
    delimiter = "\t" if ".tsv" in Path(file).name.lower() else max(",;\t|", key=header.count)
    spaced = 0 < header.count(delimiter) == header.count(f"{delimiter} ")
    layout: dict[str, Any] = {"delimiter": delimiter, "skipinitialspace": spaced}
    names = next(csv.reader([header], **layout), [])
    if repeated := [name for name in names if name and names.count(name) > 1]:
        raise InvalidInput(f"{file}: two columns are named {repeated[0]!r}; rename one in the header.")
    with open_decompressed(file) as (content, raw):
        errors = _LEGACY_ERRORS if encoding == "utf-8-sig" else "replace"
        text = io.TextIOWrapper(content, encoding, errors=errors, newline="")
        lines = list[str]()
        read = _recorded(itertools.dropwhile(_BEFORE_HEADER, text), lines)
        yield csv.DictReader(read, **layout), raw, lines


def _recorded(lines: Iterable[str], record: list[str]) -> Iterator[str]:
    for line in itertools.chain(lines, [""]):  # of which the reader makes no row
        record.append(line)
        yield line


def _next_row(reader: csv.DictReader[str], lines: list[str]) -> Row | InvalidInput | None:
    """The next row, of ``lines``, the error in it, or None at the end. Raises for damaged gzip data."""
    lines.clear()
    try:
        row = next(reader, None)
    except csv.Error as error:
        return InvalidInput(f"The row is not CSV: {error}.")
    if row is None:
        return None
    if _has_open_quote(reader, lines):
        problem = f"A quotation mark is not closed, so {sum(map(bool, lines)):,} lines became a row"
        return InvalidInput(f"{problem}; close it, or double it within a text.")
    if None in row or None in row.values():
        values = [*(value for name, value in row.items() if name and value), *row.get(None, ())]
        problem = "The row has more or fewer values than the header has columns"
        return InvalidInput(f"{problem}: {listed(values)}.")
    if all(name == value for name, value in row.items()):
        return InvalidInput("The row repeats the header.")
    return {name: value or None for name, value in row.items()}


def _has_open_quote(reader: csv.DictReader[str], lines: Sequence[str]) -> bool:
    """Whether these lines of a row are several rows: they reach the end of the file, or are not CSV."""
    dialect = reader.reader.dialect
    try:
        return not lines[-1] or (len(lines) > 1 and not list(csv.reader(lines, dialect, strict=True)))
    except csv.Error:  # also of a quotation mark within a text of several lines
        return len(reader.fieldnames or ()) in map(len, csv.reader(lines[1:], dialect))


def _parquet_rows(file: str, progress: ProgressCallback | None) -> Iterator[NumberedRow]:
    parquet = import_optional(*PYARROW)
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
    except DAMAGED_PARQUET as error:
        yield 0, InvalidInput(f"The Parquet file is damaged from here on ({error}).")
