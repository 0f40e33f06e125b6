"""Parquet tables with the schema of all their rows, whatever their order.

Numbers are widened, and objects have the keys of all rows. A column whose values have no common type that
holds each exactly becomes text: texts as they are, times in ISO 8601, other values as JSON.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from aggregator_archive import rows
from aggregator_archive.optional_imports import import_optional

BATCH_ROWS = 20_000
_NO_COMMON_TYPE = (ValueError, TypeError, OverflowError)  # errors of pyarrow


@contextmanager
def open_parquet(
    path: Path, declared: Mapping[str, Any], texts: set[str]
) -> Iterator[Callable[[rows.Row], None]]:
    """Yield a function that adds a row; the file appears when it is complete.

    ``declared``: types of columns that are not inferred; ``texts`` receives the columns that became text.
    """
    parquet, pyarrow = import_optional(*rows.PYARROW), import_optional("pyarrow", *rows.PYARROW[1:])
    part = path.with_name(path.name + ".part")
    with TemporaryFile(dir=path.parent) as spool:  # of decoded rows, until the types of all are known
        yield lambda row: pickle.dump(rows.row_as_dict(row), spool)
        types, is_exact = _infer_types(pyarrow, spool, declared, texts), False
        while not is_exact:
            names = {name: pyarrow.string() if name in texts else type_ for name, type_ in types.items()}
            known, schema = len(texts), pyarrow.schema(names)
            with parquet.ParquetWriter(part, schema) as writer:
                for batch in _batches(spool):
                    columns = [_column(pyarrow, field, batch, texts) for field in schema]
                    if is_exact := len(texts) == known:
                        writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
    os.replace(part, path)


def declared_types(files: Sequence[str]) -> dict[str, Any]:
    """The types of columns on which all files agree, if all are readable Parquet files; else none."""
    found: dict[str, set[Any]] = {}
    for file in files:
        try:
            for field in import_optional(*rows.PYARROW).read_schema(file):
                found.setdefault(field.name, set()).add(field.type)
        except rows.DAMAGED_PARQUET:  # or in another format
            return {}
    return {name: types.pop() for name, types in found.items() if len(types) == 1}


def as_text(value: Any) -> str | None:
    """A value as text; None for None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list | tuple | bool | int | float):
        return json.dumps(value, ensure_ascii=False, default=as_text)
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def _batches(spool: IO[bytes]) -> Iterator[list[dict[str, Any]]]:
    """The rows of the spool file; the last batch may be empty."""
    spool.seek(0)
    batch = []
    with suppress(EOFError):
        while True:
            batch.append(pickle.load(spool))
            if len(batch) == BATCH_ROWS:
                yield batch
                batch = []
    yield batch


def _infer_types(
    pyarrow: Any, spool: IO[bytes], declared: Mapping[str, Any], texts: set[str]
) -> dict[str, Any]:
    """The type of each column that all its values can be converted to."""
    types = dict(declared)
    for batch in _batches(spool):
        for name in dict.fromkeys(name for row in batch for name in row if name not in declared):
            known = types.setdefault(name, pyarrow.null())
            try:
                found = pyarrow.array([row.get(name) for row in batch]).type
                both = [pyarrow.schema({name: type_}) for type_ in (known, found)]
                types[name] = pyarrow.unify_schemas(both, promote_options="permissive").types[0]
            except _NO_COMMON_TYPE:
                texts.add(name)
    # Parquet has no objects without keys. A column without values is one of texts.
    texts.update(name for name, type_ in types.items() if "struct<>" in str(type_))
    return {n: pyarrow.string() if type_ == pyarrow.null() else type_ for n, type_ in types.items()}


def _column(pyarrow: Any, field: Any, batch: Sequence[Mapping[str, Any]], texts: set[str]) -> Any:
    """The values of a column, which is added to ``texts`` if its type does not hold each exactly."""
    values = [row.get(field.name) for row in batch]
    if field.name in texts:
        return pyarrow.array(map(as_text, values), pyarrow.string())
    try:
        array = pyarrow.array(values, field.type)
        if all(map(_is_equal, values, array.to_pylist())):
            return array
    except _NO_COMMON_TYPE:
        pass
    texts.add(field.name)
    return None


def _is_equal(given: Any, stored: Any) -> bool:
    """Whether a value was stored exactly; a number may have another type, an object more keys."""
    if isinstance(given, dict) and isinstance(stored, dict):
        return given.keys() <= stored.keys() and all(_is_equal(given.get(key), stored[key]) for key in stored)
    if isinstance(given, list) and isinstance(stored, list):
        return len(given) == len(stored) and all(map(_is_equal, given, stored))
    if isinstance(given, bool) != isinstance(stored, bool):
        return False
    return bool(given == stored or (given != given and stored != stored))  # noqa: PLR0124  # NaN
