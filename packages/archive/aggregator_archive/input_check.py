"""Check of the input files before a run: their format, their encoding, and the columns that options name."""

from __future__ import annotations

import codecs
import itertools
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from aggregator import jsonl
from aggregator.errors import InvalidInput
from aggregator_archive import rows
from aggregator_archive.optional_imports import import_optional

_JSON_LINE = re.compile(rb"^(\xef\xbb\xbf)?\s*\{", re.MULTILINE).search
_UNDECODED = re.compile("[\udc80-\udcff]").findall
# Words of bytes above ASCII, pairs of which may be UTF-8; in Chinese and Japanese with ASCII ones between.
_OTHER_WORDS = re.compile("{0}(?:[@-~]?{0}){{4,}}|{0}{{4,}}".format("[\x80-\u07ff\udc80-\udcff]")).findall
CHUNK_BYTES = 1 << 20
COLUMN_ROWS = 100  # of lines of JSON, whose columns are looked at
# Fields that the rules compare, each with another one that it can be read of.
COMPARED_FIELDS = {"text": "html", "title": "html", "source": "url", "published_at": "published_at"}


def check_inputs(files: Sequence[str], column_names: Mapping[str, str]) -> list[str]:
    """The remarks of ``check_columns``; raises InvalidInput also for a file without any column to compare."""
    if jsonl.STDIN in files:
        raise InvalidInput("dedupe reads its input twice and cannot use standard input; name a file.")
    remarks = check_columns(files, column_names)
    for file in files:
        names, is_table = _first_columns(file), rows.is_csv(file) or rows.is_parquet(file)
        if names and is_table:
            _check_table(file, names, column_names)
        elif names and not _has_content(names, column_names):  # raises unless a later row has it
            next(rows.parse_rows([file], (), lambda _, row: rows.parse_article(row, column_names), False))
    return remarks


def check_columns(
    files: Sequence[str], columns: rows.Columns, fields: Collection[str] = rows.ARTICLE_FIELDS
) -> list[str]:
    """Remarks about readable files, one sentence each: encoding, and columns that no field has.

    ``columns``: column of each field; ``fields``: those that are read. Raises InvalidInput for a file in
    another format, and for a column that no file has.
    """
    check_formats(files)
    remarks = dict.fromkeys(map(encoding_remark, files))  # before columns are shown
    require_columns(files, columns)
    unused: dict[str, str] = {}  # with the first file of each
    for file in files:
        remark = unused_columns(_first_columns(file), dict(columns), "--column {}=NAME", fields)
        unused.setdefault(remark, f"{file}: {remark}" if remark else "")
    return list(filter(None, [*remarks, *unused.values()]))


def check_formats(files: Sequence[str]) -> None:
    """Raise InvalidInput unless all files can be read and begin as one of the formats."""
    jsonl.check_readable(files)
    for file in files:
        if file == jsonl.STDIN or rows.is_parquet(file):
            continue
        head, is_csv = rows.read_head(file), rows.is_csv(file)
        problem = jsonl.other_format(head)
        if not (problem or is_csv or _JSON_LINE(head)) and head.strip(jsonl.BOM + b" \r\n"):
            problem = "It is not gzip, Parquet or lines of JSON; name CSV files .csv or .tsv."
        if not problem and is_csv and head.lstrip(jsonl.BOM + b" \r\n").startswith(b"{"):
            problem = "It is lines of JSON; name it .jsonl."
        if problem and not (is_csv and problem.startswith(("The file is CSV", "The file is UTF-16"))):
            raise InvalidInput(f"{file}: {problem}")


def unused_columns(
    columns: Sequence[str], column_names: Mapping[str, str], option: str, fields: Collection[str]
) -> str:
    """That compared ones of ``fields`` have no column, and columns no field, with ``option``; else empty."""
    used = {f: rows.column_of(f, columns, column_names) for f in {*rows.ARTICLE_FIELDS, *fields}}
    found = {field for field in fields if used[field] in columns}
    lacking = [f for f, other in COMPARED_FIELDS.items() if f in fields and found.isdisjoint((f, other))]
    unused = [column for column in columns if column and column not in used.values()]
    if not lacking or not unused or found.isdisjoint(rows.CONTENT_FIELDS):  # which is said of each row
        return ""
    what = f"no column is {', '.join(lacking)}; unused: {rows.listed(unused)}"
    return f"{what}; map them, e.g. with {option.format(lacking[0])}"


def encoding_remark(file: str) -> str:
    """What a CSV file that is not UTF-8 or UTF-16 is read as; empty for any other file.

    Raises InvalidInput if most of its other letters are in words of them, as in Russian or Chinese.
    """
    if file == jsonl.STDIN or not rows.is_csv(file) or rows.csv_encoding(file) != "utf-8-sig":
        return ""
    with rows.open_decompressed(file) as (content, _), suppress(*rows.DAMAGED_GZIP):
        chunks = iter(lambda: content.read(CHUNK_BYTES), b"")
        for text in codecs.iterdecode(chunks, "utf-8", "surrogateescape"):
            if _UNDECODED(text):
                others = len(text) - len(text.encode("ascii", "ignore"))
                if 2 * len(_UNDECODED("".join(_OTHER_WORDS(text)))) > others:
                    raise InvalidInput(f"{file} is not {rows.LEGACY_ENCODING} or UTF-8; save it as UTF-8.")
                return f"{file} is not UTF-8; its other letters are read as {rows.LEGACY_ENCODING}."
    return ""  # also of damaged gzip data, which the run reports


def mapped_names(columns: Sequence[str], fields: Sequence[str]) -> str:
    """The options ``--column`` for columns that are fields but for case and white space; empty: none is."""
    named = {column.strip().lower(): column for column in columns}
    pairs = [f"{field}={named[field]}" for field in fields if field not in columns and field in named]
    return " ".join(f"--column {shlex.quote(pair)}" for pair in pairs)


def require_columns(files: Sequence[str], columns: rows.Columns) -> None:
    """Raise InvalidInput unless a file has the column of each field, or none has columns."""
    files = [files] if isinstance(files, str) else files
    missing, seen = {column: field for field, column in dict(columns).items()}, dict[str, None]()
    for names in itertools.chain.from_iterable(map(_columns, files)) if columns else ():
        missing = {column: field for column, field in missing.items() if column not in names}
        seen.update(dict.fromkeys(names))
        if not missing:
            return
    for column, field in missing.items() if seen else ():
        found = f"no column {column!r} for {field}; the columns are {rows.listed(list(seen))}."
        raise InvalidInput(f"column: {', '.join(files)}: {found}")


def _has_content(columns: Sequence[str], column_names: Mapping[str, str]) -> bool:
    return any(rows.column_of(field, columns, column_names) in columns for field in rows.CONTENT_FIELDS)


def _check_table(file: str, columns: Sequence[str], column_names: Mapping[str, str]) -> None:
    """Check the columns of a table, which are the same in all rows."""
    options = mapped_names(columns, [field for field in rows.ARTICLE_FIELDS if field not in column_names])
    if options or not _has_content(columns, column_names):
        header = " (no header?)" if max(map(len, columns)) > rows.MAX_NAME_CHARACTERS else ""
        raise InvalidInput(
            f"{file}: its columns are {rows.listed(columns)}{header}; map them to "
            f"{', '.join(rows.ARTICLE_FIELDS)} with {options or '--column FIELD=NAME'}."
        )


def _first_columns(file: str) -> list[str]:
    """The columns of a table, or of the first rows of another file."""
    return list(dict.fromkeys(itertools.chain.from_iterable(itertools.islice(_columns(file), COLUMN_ROWS))))


def _columns(file: str) -> Iterator[Sequence[str]]:
    """The columns of a table, or of each usable row of other files; raises for damaged Parquet."""
    if rows.is_csv(file):
        with rows.open_csv(file) as (reader, *_), suppress(*rows.DAMAGED_GZIP):
            yield from filter(None, [reader.fieldnames])  # of damaged gzip data none: the run reports it
    elif rows.is_parquet(file):
        try:
            yield import_optional(*rows.PYARROW).read_schema(file).names
        except rows.DAMAGED_PARQUET as error:
            raise InvalidInput(f"{file}: the Parquet file is damaged ({error}).") from None
    elif file != jsonl.STDIN:  # which can be read once
        for _, _, line in rows.numbered_rows([file]):
            with suppress(InvalidInput):
                yield list(rows.row_as_dict(line))
