"""From a result to the files of ``--out``, in one place."""

from __future__ import annotations

import json
import resource
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.offline.archive import output, report
from aggregator.offline.archive import summary as figures
from aggregator.offline.archive.checkpoint import write_bytes
from aggregator.offline.archive.job import Job
from aggregator.offline.archive.pairs import merge_pairs
from aggregator.offline.archive.peak_memory import PeakMemory
from aggregator.offline.archive.pipeline import DedupeResult, ProgressListener, near_in_time
from aggregator.offline.archive.representatives import RepresentativeChoice, choose_representatives
from aggregator.time_units import DAY_MS


def write_results(
    job: Job,
    result: DedupeResult,
    progress: ProgressListener,
    *,
    worker_count: int,
    peak_memory: PeakMemory,
    keep_work: bool,
) -> dict[str, Any]:
    """Write every file; the summary that ``summary.json`` holds."""
    started = time.monotonic()
    choice = choose_representatives(result, job.representative)
    progress.start_stage("write", None, "rows")
    bad, example = output.write_bad_rows(job, result.chunks)
    output.write_pairs(job, result)
    output.write_clusters(job, result, choice)
    progress.start_stage("copy", sum(_file_size_bytes(file) for file in job.inputs), "B")
    clusters = report.sample_review_clusters(result, job.seed)
    wanted = [row for _, one, other in report.example_pairs(result) for row in (one, other)]
    wanted += [row for cluster in clusters for row in cluster]
    texts = output.write_copy_and_collect(job, result.chunks, choice.is_kept, wanted, progress.advance)
    result.stage_seconds["write"] = time.monotonic() - started
    summary = _summarize_run(job, result, choice, bad, worker_count, peak_memory) | {"first_bad_row": example}
    report.write_report(job.out_dir, result, summary, texts)
    report.write_review(job.out_dir, result, clusters, texts)
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
    found = figures.summarize(result, choice, bad_rows)
    found["total_seconds"] = round(sum(result.stage_seconds.values()), 2)
    found["articles_per_second"] = round(found["articles"] / max(1e-9, found["total_seconds"]), 1)
    peak_memory.sample()
    found["peak_memory_gb"] = round(peak_memory.total_bytes / 1e9, 3)
    found["peak_anonymous_gb"] = round(peak_memory.anonymous_bytes / 1e9, 3)
    found["cpu_seconds"] = round(_cpu_s(), 2)
    found["processes"] = worker_count
    found["within"] = _date_limit_effect(job, result)
    return found


def _date_limit_effect(job: Job, result: DedupeResult) -> dict[str, Any] | None:
    """What ``--within`` left out of the candidates."""
    if job.within_ms is None:
        return None
    files = sorted((job.work_dir / "candidates").glob("*.npz"))
    candidates = merge_pairs([np.load(file)["pairs"] for file in files])
    near = near_in_time(result.distinct_texts, candidates, job.within_ms)
    return {
        "days": job.within_ms / DAY_MS,
        "pairs_with": int(near.sum()),
        "pairs_without": len(candidates),
    }


def _cpu_s() -> float:
    """Of this process and its workers; only of the last run, when there were several."""
    found = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


def _file_size_bytes(file: str) -> int:
    return Path(file).stat().st_size
