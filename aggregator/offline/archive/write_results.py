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
from aggregator.offline.archive.checkpoint import write
from aggregator.offline.archive.job import Job
from aggregator.offline.archive.pairs import merged
from aggregator.offline.archive.peak_memory import Peak
from aggregator.offline.archive.pipeline import Result, Told, near_in_time
from aggregator.offline.archive.representatives import Choice, choose

DAY_MS = 86_400_000


def finish(
    job: Job, result: Result, told: Told, *, width: int, peak: Peak, keep_work: bool
) -> dict[str, Any]:
    """Write every file; the summary that ``summary.json`` holds."""
    started = time.monotonic()
    choice = choose(result, job.representative)
    told.stage("write", None, "rows")
    bad, example = output.write_bad(job, result.chunks)
    output.write_pairs(job, result)
    output.write_clusters(job, result, choice)
    told.stage("copy", sum(_size(file) for file in job.inputs), "B")
    clusters = report.review_clusters(result, job.seed)
    wanted = [row for _, one, other in report.examples(result) for row in (one, other)]
    wanted += [row for cluster in clusters for row in cluster]
    texts = output.second_reading(job, result.chunks, choice.stays, wanted, told.advance)
    result.seconds["write"] = time.monotonic() - started
    summary = _summary(job, result, choice, bad, width, peak) | {"first_bad_row": example}
    report.write_report(job.out, result, summary, texts)
    report.write_review(job.out, result, clusters, texts)
    write(job.out / "summary.json", json.dumps(summary, indent=1).encode())
    if not keep_work:
        shutil.rmtree(job.work)
    return summary


def _summary(job: Job, result: Result, choice: Choice, bad: int, width: int, peak: Peak) -> dict[str, Any]:
    found = figures.summary(result, choice, bad)
    found["total_seconds"] = round(sum(result.seconds.values()), 2)
    found["articles_per_second"] = round(found["articles"] / max(1e-9, found["total_seconds"]), 1)
    peak.look()
    found["peak_memory_gb"] = round(peak.total / 1e9, 3)
    found["peak_anonymous_gb"] = round(peak.anonymous / 1e9, 3)
    found["cpu_seconds"] = round(_cpu_s(), 2)
    found["processes"] = width
    found["within"] = _within(job, result)
    return found


def _within(job: Job, result: Result) -> dict[str, Any] | None:
    """What ``--within`` left out of the candidates."""
    if job.within_ms is None:
        return None
    files = sorted((job.work / "candidates").glob("*.npz"))
    candidates = merged([np.load(file)["pairs"] for file in files])
    near = near_in_time(result.distinct, candidates, job.within_ms)
    return {
        "days": job.within_ms / DAY_MS,
        "pairs_with": int(near.sum()),
        "pairs_without": len(candidates),
    }


def _cpu_s() -> float:
    """Of this process and its workers; only of the last run, when there were several."""
    found = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


def _size(file: str) -> int:
    return Path(file).stat().st_size
