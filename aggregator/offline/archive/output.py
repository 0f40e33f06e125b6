"""The files of a finished run: pairs, clusters, representatives, bad rows and the deduplicated copy.

Tables are JSON Lines or Parquet. The copy is made by reading the input once more; a JSON row is written as it was
read, byte for byte.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from aggregator.errors import BadInput
from aggregator.offline import jsonl
from aggregator.offline.archive import rows
from aggregator.offline.archive.encode import about_chunk, usable
from aggregator.offline.archive.job import Format, Job
from aggregator.offline.archive.optional_imports import needed
from aggregator.offline.archive.pairs import rows_of
from aggregator.offline.archive.pipeline import Result
from aggregator.offline.archive.representatives import Choice

BATCH = 20_000
Write = Callable[[dict[str, Any] | bytes], None]


@contextlib.contextmanager
def table(path: Path, format: Format) -> Iterator[Write]:
    """A function that adds one row to ``path``, which appears when it is complete."""
    with _parquet(path) if format == "parquet" else _json_lines(path) as write:
        yield write


def name_of(table: str, format: Format) -> str:
    return f"{table}.{format}"


def write_pairs(job: Job, result: Result) -> None:
    """Confirmed pairs, and each row of equal text with the first of its text."""
    columns, found = result.columns, result.confirmed
    a, b = rows_of(found.pairs)
    with table(job.out / name_of("pairs", job.format), job.format) as write:
        for at in range(len(a)):
            write(
                {
                    "id1": columns.id_of(int(a[at])),
                    "id2": columns.id_of(int(b[at])),
                    "rule": "overlap",
                    "distance": None if found.distance[at] > 64 else int(found.distance[at]),
                    "containment": round(float(found.overlaps.containment[at]), 4),
                    "resemblance": round(float(found.overlaps.resemblance[at]), 4),
                    "shared": round(float(found.overlaps.shared[at])),
                }
            )
        first = result.distinct.first
        for row in np.flatnonzero(first != np.arange(len(first))).tolist():
            write(
                {
                    "id1": columns.id_of(int(first[row])), "id2": columns.id_of(row), "rule": "exact",
                    "distance": 0, "containment": 1.0, "resemblance": 1.0, "shared": int(columns.size[row]),
                }
            )  # fmt: skip


def write_clusters(job: Job, result: Result, choice: Choice) -> None:
    """One line per article in a group of two or more, group after group; and one line per group."""
    columns, labels = result.columns, result.labels
    sizes = np.bincount(labels, minlength=len(labels))
    members = np.flatnonzero(sizes[labels] > 1)
    members = members[np.argsort(labels[members], kind="stable")]
    with (
        table(job.out / name_of("clusters", job.format), job.format) as write,
        table(job.out / name_of("representatives", job.format), job.format) as write_one,
    ):
        number, last = 0, -1
        for row in members.tolist():
            label = int(labels[row])
            if label != last:
                number, last = number + 1, label
                chosen = columns.id_of(int(choice.representative[row]))
                write_one({"cluster": number, "id": chosen, "size": int(sizes[label])})
            copy_of = int(choice.copy_of[row])
            write(
                {
                    "cluster": number,
                    "id": columns.id_of(row),
                    "representative": bool(choice.representative[row] == row),
                    "copy_of": None if copy_of == row else columns.id_of(copy_of),
                }
            )


def write_bad(job: Job, chunks: Iterable[Path]) -> tuple[int, str]:
    """Rows that could not be used, with file, row number and reason; how many, and the first reason."""
    count, example = 0, ""
    with _json_lines(job.out / "bad_rows.jsonl") as write:
        for chunk in chunks:
            for bad in about_chunk(chunk)["bad"]:
                write(bad)
                example = example or f"{bad['file']}, row {bad['row']}: {bad['reason']}"
                count += 1
    return count, example


def second_reading(
    job: Job,
    chunks: Sequence[Path],
    stays: npt.NDArray[np.bool_],
    wanted: Iterable[int],
    advance: Callable[[int], None],
) -> dict[int, dict[str, Any]]:
    """Write the deduplicated copy (if asked for) and bring back the rows in ``wanted``, by number."""
    missing, found = set(wanted), {}
    with contextlib.ExitStack() as stack:
        write = None
        if job.copy:
            path = job.out / name_of("deduplicated", job.format)
            write = stack.enter_context(table(path, job.format))
        for at, row in enumerate(usable(job.inputs, chunks, advance)):
            if at in missing:
                found[at] = rows.as_dict(row)
            if write is not None and stays[at]:
                write(row)
    return found


@contextlib.contextmanager
def _json_lines(path: Path) -> Iterator[Write]:
    encode = msgspec.json.Encoder().encode
    with jsonl.writing(str(path)) as line:
        yield lambda row: line(row if isinstance(row, bytes) else encode(row))


@contextlib.contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    """Rows in batches; the first batch decides the columns."""
    pyarrow = needed("pyarrow", "corpus", "Writing Parquet")
    parquet = needed("pyarrow.parquet", "corpus", "Writing Parquet")
    part = path.with_name(path.name + ".part")
    waiting: list[dict[str, Any]] = []
    writer: list[Any] = []

    def flush() -> None:
        if not waiting and writer:
            return
        schema = writer[0].schema if writer else _schema(pyarrow, waiting)
        if not writer:
            writer.append(parquet.ParquetWriter(part, schema))
        try:
            writer[0].write_table(pyarrow.Table.from_pylist(waiting, schema=schema))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
            raise BadInput(
                f"{path}: a column holds values of several kinds ({error}); use --format jsonl."
            ) from None
        waiting.clear()

    def write(row: dict[str, Any] | bytes) -> None:
        waiting.append(rows.as_dict(row))
        if len(waiting) == BATCH:
            flush()

    try:
        yield write
        flush()
    finally:
        for one in writer:
            one.close()
    os.replace(part, path)


def _schema(pyarrow: Any, found: Sequence[dict[str, Any]]) -> Any:
    """The columns of these rows; one that is empty so far is taken for text."""
    names = dict.fromkeys(name for row in found for name in row)
    inferred = pyarrow.Table.from_pylist([{name: row.get(name) for name in names} for row in found]).schema
    fields = [
        pyarrow.field(field.name, pyarrow.string()) if pyarrow.types.is_null(field.type) else field
        for field in inferred
    ]
    return pyarrow.schema(fields)
