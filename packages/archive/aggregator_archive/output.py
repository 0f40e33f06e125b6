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
from aggregator.time_units import DAY_MS
from aggregator_archive import dates, report, rows
from aggregator_archive.arrays import Flags, unpack_pairs, write_bytes
from aggregator_archive.confirm import DIFFERENT_SPACES
from aggregator_archive.encode import chunk_metadata, usable_rows
from aggregator_archive.executors import PeakMemory
from aggregator_archive.job import Job
from aggregator_archive.parquet_table import as_text, declared_types, open_parquet
from aggregator_archive.pipeline import DedupeResult, ProgressListener
from aggregator_archive.representatives import RepresentativeChoice, choose_representatives
from aggregator_archive.summary import summarize

RowWriter = Callable[[rows.Row], None]


def open_table(job: Job, table: str, texts: set[str]) -> contextlib.AbstractContextManager[RowWriter]:
    """Open a table and yield a function that adds a row; ``texts`` as for ``open_parquet``."""
    if job.format == "jsonl":
        return _json_lines_table(job.table(table))
    types = declared_types(job.inputs) if table == "deduplicated" else {}
    return open_parquet(job.table(table), types, texts)


def row_names(result: DedupeResult) -> Callable[[int], tuple[str, str, int]]:
    """A function that returns id, file and number in it of a row."""
    numbers = [np.load(chunk)["kept"] for chunk in result.chunks]
    files = [chunk_metadata(chunk)["file"] for chunk in result.chunks]
    ends = np.cumsum([len(of_chunk) for of_chunk in numbers])

    def name(row: int) -> tuple[str, str, int]:
        at = int(np.searchsorted(ends, row, side="right"))
        return result.columns.id_of(row), files[at], int(numbers[at][row - ends[at]])

    return name


def write_pairs(job: Job, result: DedupeResult) -> None:
    """Write the confirmed pairs, and each row of equal text paired with the first row of its text."""
    columns, confirmed = result.columns, result.confirmed
    a, b = unpack_pairs(confirmed.pairs)
    name, sides = row_names(result), ("id1", "file1", "row1", "id2", "file2", "row2")
    with open_table(job, "pairs", set()) as write:
        distance = confirmed.distance
        for at in np.flatnonzero(~confirmed.undecided).tolist():
            write(
                {
                    **dict(zip(sides, (*name(int(a[at])), *name(int(b[at]))), strict=True)),
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
                    **dict(zip(sides, (*name(int(first[row])), *name(row)), strict=True)), "rule": "exact",
                    "distance": 0, "containment": 1.0, "resemblance": 1.0, "shared": int(columns.size[row]),
                }
            )  # fmt: skip


def write_clusters(job: Job, result: DedupeResult, choice: RepresentativeChoice) -> None:
    """Write one row per article in a group of two or more, group by group, and one row per group."""
    name, labels = row_names(result), result.labels
    sizes = np.bincount(labels, minlength=len(labels))
    members = np.flatnonzero(sizes[labels] > 1)
    members = members[np.argsort(labels[members], kind="stable")]
    no_texts = set[str]()  # the columns of these tables have one type each
    with (
        open_table(job, "clusters", no_texts) as write,
        open_table(job, "representatives", no_texts) as group,
    ):
        number, last = 0, -1
        for row in members.tolist():
            label = int(labels[row])
            id_, file, at = name(row)
            if label != last:
                number, last = number + 1, label
                chosen = dict(zip(("id", "file", "row"), name(int(choice.representative[row])), strict=True))
                group({"cluster": number, **chosen, "size": int(sizes[label])})
            copied = int(choice.copy_of[row])
            copy_of, copy_of_file, copy_of_row = (None,) * 3 if copied == row else name(copied)
            write(
                {
                    "cluster": number, "id": id_, "file": file, "row": at,
                    "representative": bool(choice.representative[row] == row),
                    "copy_of": copy_of, "copy_of_file": copy_of_file, "copy_of_row": copy_of_row,
                }
            )  # fmt: skip


def write_bad_rows(job: Job, chunks: Iterable[Path]) -> tuple[int, str]:
    """Write the invalid rows, if any, with their reasons; returns their number and the first reason."""
    count, example, path = 0, "", job.out_dir / "bad_rows.jsonl"
    with _json_lines_table(path) as write:
        for chunk in chunks:
            for bad in chunk_metadata(chunk)["bad"]:
                write(bad)
                example = example or f"{bad['file']}, row {bad['row']}: {bad['reason']}"
                count += 1
    if not count:  # which not all readers take
        path.unlink()
    return count, example


def write_copy_and_collect(
    job: Job,
    chunks: Sequence[Path],
    is_kept: Flags,
    wanted_rows: Iterable[int],
    on_progress: Callable[[int], None],
) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Write the deduplicated copy; returns rows ``wanted_rows`` by number, and columns that became text."""
    wanted, articles, texts = set(wanted_rows), {}, set[str]()
    with open_table(job, "deduplicated", texts) as write:
        for at, row in enumerate(usable_rows(job.inputs, chunks, on_progress)):
            if at in wanted:
                articles[at] = rows.row_as_dict(row)
            if is_kept[at]:
                write(row)
    return articles, sorted(texts)


@contextlib.contextmanager
def _json_lines_table(path: Path) -> Iterator[RowWriter]:
    encode = msgspec.json.Encoder(enc_hook=as_text).encode
    with jsonl.open_output(str(path)) as line:
        yield lambda row: line(row if isinstance(row, bytes) else encode(row))


def write_results(
    job: Job, result: DedupeResult, progress: ProgressListener, *, worker_count: int, peak_memory: PeakMemory
) -> dict[str, Any]:
    """Write all files, and return the content of ``summary.json``; the working files are deleted at the end.

    Results are published when all are complete. ``worker_count`` and ``peak_memory`` are part of the summary.
    """
    started = time.monotonic()
    staged = replace(job, out_dir=job.work_dir / "results")
    shutil.rmtree(staged.out_dir, ignore_errors=True)
    staged.out_dir.mkdir()
    choice = choose_representatives(result, job)
    progress.start_stage("write", None, "rows")
    bad, example = write_bad_rows(staged, result.chunks)
    write_pairs(staged, result)
    write_clusters(staged, result, choice)
    progress.start_stage("copy", sum(Path(file).stat().st_size for file in job.inputs), "B")
    clusters = report.sample_review_clusters(result, job.seed)
    shown = [row for _, *pair in report.example_pairs(result) for row in pair]
    shown += [row for cluster in clusters for row in cluster]
    articles_by_row, text_columns = write_copy_and_collect(
        staged, result.chunks, choice.is_kept, shown, progress.advance
    )
    result.stage_seconds["write"] = time.monotonic() - started
    summary = _summarize_run(job, result, choice, bad, worker_count, peak_memory) | {
        "first_bad_row": example,
        "rows_with_text": int(result.columns.has_text.sum()),
        "text_columns": text_columns,
        "dates": asdict(dates.total(chunk_metadata(chunk)["dates"] for chunk in result.chunks)),
    }
    report.write_report(staged.out_dir, result, choice.copy_of, summary, articles_by_row)
    report.write_review(staged.out_dir, result, choice.copy_of, clusters, articles_by_row)
    write_bytes(staged.out_dir / "summary.json", json.dumps(summary, indent=1).encode())
    # By its summary ``check_out_dir`` recognizes the results of a run, also if moving them is interrupted.
    (job.out_dir / "bad_rows.jsonl").unlink(missing_ok=True)  # of an earlier run
    for path in sorted(staged.out_dir.iterdir(), key=lambda path: path.name != "summary.json"):
        os.replace(path, job.out_dir / path.name)
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
