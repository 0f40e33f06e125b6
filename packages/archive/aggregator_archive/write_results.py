"""Writes all files of ``--out`` from the result of a run."""

from __future__ import annotations

import json
import resource
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.time_units import DAY_MS
from aggregator_archive import output, report
from aggregator_archive.checkpoint import write_bytes
from aggregator_archive.job import Job
from aggregator_archive.pairs import merge_pairs
from aggregator_archive.peak_memory import PeakMemory
from aggregator_archive.pipeline import DedupeResult, ProgressListener, near_in_time
from aggregator_archive.representatives import RepresentativeChoice, choose_representatives
from aggregator_archive.summary import summarize


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
    choice = choose_representatives(result, job.representative)
    progress.start_stage("write", None, "rows")
    bad, example = output.write_bad_rows(job, result.chunks)
    output.write_pairs(job, result)
    output.write_clusters(job, result, choice)
    progress.start_stage("copy", sum(Path(file).stat().st_size for file in job.inputs), "B")
    clusters = report.sample_review_clusters(result, job.seed)
    shown = [row for _, *pair in report.example_pairs(result) for row in pair]
    shown += [row for cluster in clusters for row in cluster]
    articles_by_row = output.write_copy_and_collect(
        job, result.chunks, choice.is_kept, shown, progress.advance
    )
    result.stage_seconds["write"] = time.monotonic() - started
    summary = _summarize_run(job, result, choice, bad, worker_count, peak_memory) | {"first_bad_row": example}
    report.write_report(job.out_dir, result, summary, articles_by_row)
    report.write_review(job.out_dir, result, clusters, articles_by_row)
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
    return summary | {
        "total_seconds": total_seconds,
        "articles_per_second": round(summary["articles"] / max(1e-9, total_seconds), 1),
        "peak_memory_gb": round(peak_memory.total_bytes / 1e9, 3),
        "peak_anonymous_gb": round(peak_memory.anonymous_bytes / 1e9, 3),
        "cpu_seconds": round(_cpu_s(), 2),
        "processes": worker_count,
        "within": _date_limit_effect(job, result),
    }


def _date_limit_effect(job: Job, result: DedupeResult) -> dict[str, Any] | None:
    """Number of candidate pairs with and without ``--within``; None if the option is not used."""
    if job.within_ms is None:
        return None
    files = sorted((job.work_dir / "candidates").glob("*.npz"))
    candidates = merge_pairs([np.load(file)["pairs"] for file in files])
    near = near_in_time(result.distinct_texts, candidates, job.within_ms)
    return {"days": job.within_ms / DAY_MS, "pairs_with": int(near.sum()), "pairs_without": len(candidates)}


def _cpu_s() -> float:
    """CPU time of this process and its finished workers; earlier runs of resumed work are not included."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
