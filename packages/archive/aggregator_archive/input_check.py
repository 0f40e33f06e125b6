"""Check of the input files before a run: their format, their encoding, and the columns that options name."""

from __future__ import annotations

import codecs
import gzip
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from aggregator import jsonl
from aggregator.errors import InvalidInput
from aggregator_archive import rows
from aggregator_archive.optional_imports import import_optional

CHUNK_BYTES = 1 << 20


def check_inputs(files: Sequence[str], column_names: Mapping[str, str]) -> list[str]:
    """Remarks about readable files, one sentence each; ``column_names``: field -> column.

    Raises InvalidInput for a file in another format, for one without a named column, and for a table
    without any column to compare.
    """
    if jsonl.STDIN in files:
        raise InvalidInput("dedupe reads its input twice and cannot use standard input; name a file.")
    jsonl.check_readable(files)
    remarks = []
    for file in files:
        head = rows.read_head(file)
        if head.startswith(rows.PARQUET_MAGIC):
            _check_parquet(file, column_names)
        elif rows.is_csv(file):
            _check_csv(file, head, column_names)
            remarks.append(encoding_remark(file))
        elif problem := jsonl.other_format(head):
            raise InvalidInput(f"{file}: {problem}")
        else:
            require_columns([file], list(column_names.items()))
    return [remark for remark in remarks if remark]


def encoding_remark(file: str) -> str:
    """What a CSV file that is not UTF-8 is read as; empty for any other file."""
    if file == jsonl.STDIN or not rows.is_csv(file) or _is_utf8(file):
        return ""
    return f"{file} is not UTF-8; its other letters are read as {rows.LEGACY_ENCODING}."


def mapped_names(columns: Sequence[str], fields: Sequence[str]) -> str:
    """The options ``--column`` for columns that are fields but for case and white space; empty: none is."""
    named = {column.strip().lower(): column for column in columns}
    pairs = [f"{field}={named[field]}" for field in fields if field not in columns and field in named]
    return " ".join(f"--column {shlex.quote(pair)}" for pair in pairs)


def require_columns(files: Sequence[str], columns: Sequence[tuple[str, str]]) -> None:
    """Raise InvalidInput unless each file with rows has the column of each (field, column) in one."""
    for file in files if columns else ():
        missing, seen = {column for _, column in columns}, dict[str, None]()
        for names in _columns_of_rows(file):
            missing.difference_update(names)
            seen.update(dict.fromkeys(names))
            if not missing:
                break
        if seen:
            _check_named(file, list(seen), dict(columns))


def _check_parquet(file: str, column_names: Mapping[str, str]) -> None:
    parquet = import_optional(*rows.PYARROW)
    try:
        columns = parquet.ParquetFile(file).schema_arrow.names
    except OSError:  # pyarrow raises OSError for a damaged file; the run reports it
        return
    _check_table(file, columns, column_names)


def _check_csv(file: str, head: bytes, column_names: Mapping[str, str]) -> None:
    problem = jsonl.other_format(head)
    if problem and not problem.startswith(("The file is CSV", "The file is UTF-16")):
        raise InvalidInput(f"{file}: {problem}")
    with rows.open_csv(file) as (reader, _):
        try:
            columns = list(reader.fieldnames or ())
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return  # the run reports it
    if columns:
        _check_table(file, columns, column_names)


def _check_table(file: str, columns: Sequence[str], column_names: Mapping[str, str]) -> None:
    """Check the columns of a table, which are the same in all rows."""
    _check_named(file, columns, column_names)
    options = mapped_names(columns, [field for field in rows.ARTICLE_FIELDS if field not in column_names])
    named = [column_names.get(field, field) in columns for field in rows.CONTENT_FIELDS]
    if options or not any(named):
        raise InvalidInput(
            f"{file}: its columns are {rows.listed(columns)}; map them to {', '.join(rows.ARTICLE_FIELDS)} "
            f"with {options or '--column FIELD=NAME'}."
        )


def _columns_of_rows(file: str) -> Iterator[list[str]]:
    """The columns of each usable row."""
    for _, _, line in rows.numbered_rows([file]):
        with suppress(InvalidInput):
            yield list(rows.row_as_dict(line))


def _check_named(file: str, columns: Sequence[str], column_names: Mapping[str, str]) -> None:
    for field, column in column_names.items():
        if column not in columns:
            found = f"its columns are {rows.listed(columns)}."
            raise InvalidInput(f"column: {file} has no column {column!r} for {field}; {found}")


def _is_utf8(file: str) -> bool:
    """Whether all of a CSV file is UTF-8, or UTF-16 with a byte order mark."""
    if rows.read_head(file)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    with rows.open_decompressed(file) as (content, _):
        try:
            while chunk := content.read(CHUNK_BYTES):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return True  # the run reports it
    return True
