"""Output of a run: pairs, clusters, representatives, bad rows, the deduplicated copy, summary and pages.

Tables are JSON Lines or Parquet. The copy is made by reading the input again, byte for byte for JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from aggregator import jsonl
from aggregator.errors import InvalidInput
from aggregator.time_units import DAY_MS
from aggregator_archive import dates, report, rows
from aggregator_archive.arrays import Flags, unpack_pairs, write_bytes
from aggregator_archive.confirm import DIFFERENT_SPACES
from aggregator_archive.encode import chunk_metadata, usable_rows
from aggregator_archive.executors import PeakMemory
from aggregator_archive.job import Job
from aggregator_archive.optional_imports import import_optional
from aggregator_archive.pipeline import DedupeResult, ProgressListener
from aggregator_archive.representatives import RepresentativeChoice, choose_representatives
from aggregator_archive.summary import summarize

PARQUET_BATCH_ROWS = 20_000
RowWriter = Callable[[dict[str, Any] | bytes], None]


def open_table(job: Job, table: str) -> contextlib.AbstractContextManager[RowWriter]:
    """Open a table and yield a function that adds a row; its file appears when it is complete."""
    return (_parquet_table if job.format == "parquet" else _json_lines_table)(job.table(table))


def write_pairs(job: Job, result: DedupeResult) -> None:
    """Write the confirmed pairs, and each row of equal text paired with the first row of its text."""
    columns, confirmed = result.columns, result.confirmed
    a, b = unpack_pairs(confirmed.pairs)
    with open_table(job, "pairs") as write:
        distance = confirmed.distance
        for at in range(len(a)):
            write(
                {
                    "id1": columns.id_of(int(a[at])),
                    "id2": columns.id_of(int(b[at])),
                    "rule": "overlap",
                    "distance": None if distance[at] == DIFFERENT_SPACES else int(distance[at]),
                    "containment": round(float(confirmed.overlaps.containment[at]), 4),
                    "resemblance": round(float(confirmed.overlaps.resemblance[at]), 4),
                    "shared": round(float(confirmed.overlaps.shared[at])),
                }
            )
        first = result.distinct_texts.first_row
        for row in np.flatnonzero(first != np.arange(len(first))).tolist():
            write(
                {
                    "id1": columns.id_of(int(first[row])), "id2": columns.id_of(row), "rule": "exact",
                    "distance": 0, "containment": 1.0, "resemblance": 1.0, "shared": int(columns.size[row]),
                }
            )  # fmt: skip


def write_clusters(job: Job, result: DedupeResult, choice: RepresentativeChoice) -> None:
    """Write one row per article in a group of two or more, group by group, and one row per group."""
    columns, labels = result.columns, result.labels
    sizes = np.bincount(labels, minlength=len(labels))
    members = np.flatnonzero(sizes[labels] > 1)
    members = members[np.argsort(labels[members], kind="stable")]
    numbers = [np.load(chunk)["kept"] for chunk in result.chunks]
    files = [chunk_metadata(chunk)["file"] for chunk in result.chunks]
    ends = np.cumsum([len(of_chunk) for of_chunk in numbers])

    def name(row: int) -> dict[str, Any]:
        at = int(np.searchsorted(ends, row, side="right"))
        return {"id": columns.id_of(row), "file": files[at], "row": int(numbers[at][row - ends[at]])}

    with open_table(job, "clusters") as write, open_table(job, "representatives") as write_group:
        number, last = 0, -1
        for row in members.tolist():
            label = int(labels[row])
            if label != last:
                number, last = number + 1, label
                chosen = int(choice.representative[row])
                write_group({"cluster": number, **name(chosen), "size": int(sizes[label])})
            copy_of = int(choice.copy_of[row])
            write(
                {
                    "cluster": number,
                    **name(row),
                    "representative": bool(choice.representative[row] == row),
                    "copy_of": None if copy_of == row else columns.id_of(copy_of),
                }
            )


def write_bad_rows(job: Job, chunks: Iterable[Path]) -> tuple[int, str]:
    """Write the invalid rows with file, row number and reason; returns their number and the first reason."""
    count, example = 0, ""
    with _json_lines_table(job.out_dir / "bad_rows.jsonl") as write:
        for chunk in chunks:
            for bad in chunk_metadata(chunk)["bad"]:
                write(bad)
                example = example or f"{bad['file']}, row {bad['row']}: {bad['reason']}"
                count += 1
    return count, example


def write_copy_and_collect(
    job: Job,
    chunks: Sequence[Path],
    is_kept: Flags,
    wanted_rows: Iterable[int],
    on_progress: Callable[[int], None],
) -> dict[int, dict[str, Any]]:
    """Write the deduplicated copy (if ``job.write_copy``), and return the rows ``wanted_rows`` by number."""
    wanted, articles = set(wanted_rows), {}
    with contextlib.ExitStack() as stack:
        write = None
        if job.write_copy:
            write = stack.enter_context(open_table(job, "deduplicated"))
        for at, row in enumerate(usable_rows(job.inputs, chunks, on_progress)):
            if at in wanted:
                articles[at] = rows.row_as_dict(row)
            if write is not None and is_kept[at]:
                write(row)
    return articles


@contextlib.contextmanager
def _json_lines_table(path: Path) -> Iterator[RowWriter]:
    encode = msgspec.json.Encoder().encode
    with jsonl.open_output(str(path)) as line:
        yield lambda row: line(row if isinstance(row, bytes) else encode(row))


@contextlib.contextmanager
def _parquet_table(path: Path) -> Iterator[RowWriter]:
    """Rows written in batches; the first batch determines the schema."""
    parquet = import_optional(*rows.PYARROW)
    pyarrow = import_optional("pyarrow", *rows.PYARROW[1:])
    part = path.with_name(path.name + ".part")
    buffered: list[dict[str, Any]] = []
    writer: list[Any] = []

    def flush() -> None:
        if not buffered and writer:
            return
        schema = writer[0].schema if writer else _infer_schema(pyarrow, buffered)
        if not writer:
            writer.append(parquet.ParquetWriter(part, schema))
        try:
            writer[0].write_table(pyarrow.Table.from_pylist(buffered, schema=schema))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
            raise InvalidInput(
                f"{path}: a column holds values of several kinds ({error}); use --format jsonl."
            ) from None
        buffered.clear()

    def write(row: dict[str, Any] | bytes) -> None:
        buffered.append(rows.row_as_dict(row))
        if len(buffered) == PARQUET_BATCH_ROWS:
            flush()

    try:
        yield write
        flush()
    finally:
        for opened in writer:
            opened.close()
    os.replace(part, path)


def _infer_schema(pyarrow: Any, batch: Sequence[dict[str, Any]]) -> Any:
    """The schema of these rows; a column without values is a string column."""
    names = dict.fromkeys(name for row in batch for name in row)
    inferred = pyarrow.Table.from_pylist([{name: row.get(name) for name in names} for row in batch]).schema
    fields = [
        pyarrow.field(field.name, pyarrow.string()) if pyarrow.types.is_null(field.type) else field
        for field in inferred
    ]
    return pyarrow.schema(fields)


def write_results(
    job: Job,
    result: DedupeResult,
    progress: ProgressListener,
    *,
    worker_count: int,
    peak_memory: PeakMemory,
    keep_work: bool,
) -> dict[str, Any]:
    """Write all files, and return the content of ``summary.json``; the working files are deleted at the end.

    ``keep_work`` keeps the working files; ``worker_count`` and ``peak_memory`` are part of the summary.
    """
    started = time.monotonic()
    choice = choose_representatives(result, job.representative, job.policy)
    progress.start_stage("write", None, "rows")
    bad, example = write_bad_rows(job, result.chunks)
    metadata = [chunk_metadata(chunk) for chunk in result.chunks]
    texts = sum(about["texts"] for about in metadata)
    if not (texts or job.by_headline):
        choice = replace(choice, copy_of=np.arange(len(choice.copy_of)))
    write_pairs(job, result)
    write_clusters(job, result, choice)
    progress.start_stage("copy", sum(Path(file).stat().st_size for file in job.inputs), "B")
    clusters = report.sample_review_clusters(result, job.seed)
    shown = [row for _, *pair in report.example_pairs(result) for row in pair]
    shown += [row for cluster in clusters for row in cluster]
    articles_by_row = write_copy_and_collect(job, result.chunks, choice.is_kept, shown, progress.advance)
    result.stage_seconds["write"] = time.monotonic() - started
    summary = _summarize_run(job, result, choice, bad, worker_count, peak_memory) | {
        "first_bad_row": example,
        "rows_with_text": texts,
        "dates": asdict(dates.total(about["dates"] for about in metadata)),
    }
    report.write_report(job.out_dir, result, choice.copy_of, summary, articles_by_row)
    report.write_review(job.out_dir, result, choice.copy_of, clusters, articles_by_row)
    write_bytes(job.out_dir / "summary.json", json.dumps(summary, indent=1).encode())
    if not keep_work:
        shutil.rmtree(job.work_dir)
    return summary


def _summarize_run(
    job: Job,
    result: DedupeResult,
    choice: RepresentativeChoice,
    bad_rows: int,
    worker_count: int,
    peak_memory: PeakMemory,
) -> dict[str, Any]:
    summary = summarize(result, choice, bad_rows)
    total_seconds = round(sum(result.stage_seconds.values()), 2)
    peak_memory.sample()
    # Of this process and its finished workers; earlier runs of resumed work are not included.
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    pairs = {"pairs_with": result.near_count, "pairs_without": result.candidate_count}
    return summary | {
        "total_seconds": total_seconds,
        "articles_per_second": round(summary["articles"] / max(1e-9, total_seconds), 1),
        "peak_memory_gb": round(peak_memory.total_bytes / 1e9, 3),
        "peak_anonymous_gb": round(peak_memory.anonymous_bytes / 1e9, 3),
        "cpu_seconds": round(sum(usage.ru_utime + usage.ru_stime for usage in usages), 2),
        "processes": worker_count,
        "within": {"days": job.within_ms / DAY_MS, **pairs} if job.within_ms is not None else None,
    }
