"""``aggregator dedupe``: deduplicate an archive; writes pairs, groups, the deduplicated rows and reports."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from aggregator.cli.common_options import check_profile, requested_profile
from aggregator.cli.progress import open_bar
from aggregator.dedup.policy import Policy
from aggregator.errors import EXIT_OK, EXIT_PARTIAL_FAILURE, ConfigurationError
from aggregator.policy_file import load_policies
from aggregator.settings import Settings
from aggregator_archive.columns import repeated_ids_problem
from aggregator_archive.dates import DateCounts, require_dates
from aggregator_archive.encode import Encoding
from aggregator_archive.executors import open_pool, track_peak_memory
from aggregator_archive.input_check import check_inputs
from aggregator_archive.job import Job, check_out_dir, discard_empty_work, prepare_work_dir
from aggregator_archive.output import write_results
from aggregator_archive.pipeline import ProgressListener, run_pipeline
from aggregator_archive.rows import counted

SMALL_INPUT_BYTES = 1_000_000  # processes would take longer to start


def selected_policy(args: argparse.Namespace, settings: Settings) -> tuple[str, Policy]:
    """Name and policy of a command that judges all articles alike. Raises ConfigurationError."""
    policies = load_policies(settings)
    profile = requested_profile(args)
    if not profile:
        return policies.default.policy.name, policies.default.policy
    check_profile(policies, profile)
    return profile, policies.named(profile).policy


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Exit code 0 if all rows were used, 1 if some were invalid. Raises for errors of the whole run."""
    job = build_job(args, settings)
    for remark in check_inputs(job.inputs, dict(job.encoding.columns)):
        print(remark, file=sys.stderr)
    check_out_dir(job)
    if job.within_ms is not None:
        require_dates(job.inputs, dict(job.encoding.columns))
    is_small = sum(Path(file).stat().st_size for file in job.inputs) < SMALL_INPUT_BYTES
    progress = ProgressBars(shown=not args.no_progress)
    try:
        with track_peak_memory() as peak:
            with open_pool(args.processes or int(is_small), args.dask or "") as pool:
                if prepare_work_dir(job, fresh=args.fresh):
                    print(f"resuming the run in {job.work_dir}", file=sys.stderr)
                result = run_pipeline(job, pool, progress)
            worker_count = pool.worker_count if pool.executor else 1
            summary = write_results(job, result, progress, worker_count=worker_count, peak_memory=peak)
    finally:
        progress.close()
        discard_empty_work(job)
    _print_summary(summary, job)
    if args.load:
        from aggregator_archive.cli.load import load_into_index  # imports the whole service

        if load_into_index(job, args, settings):
            return EXIT_PARTIAL_FAILURE
    return EXIT_PARTIAL_FAILURE if summary["bad_rows"] else EXIT_OK


def build_job(args: argparse.Namespace, settings: Settings) -> Job:
    """The job for the options. Raises ConfigurationError."""
    if not 0 <= args.threshold <= 1:
        raise ConfigurationError(f"threshold: {args.threshold:g} is not a resemblance from 0 to 1.")
    encoding = Encoding(settings.models_dir, tuple(sorted(args.column)), args.lang or "", args.shingles)
    return Job(
        inputs=tuple(args.files),
        out_dir=Path(args.out),
        encoding=encoding,
        threshold=args.threshold,
        radius_bits=args.radius,
        policy=selected_policy(args, settings)[1],
        within_ms=args.within,
        cap=args.cap,
        representative=args.representative,
        format=args.format,
        by_headline=args.by_headline,
    )


class ProgressBars(ProgressListener):
    """A progress bar per stage, with the estimated time left."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown and sys.stderr.isatty()  # else tqdm is not imported: 60 ms
        self._bar: Any = None

    def start_stage(self, name: str, total: int | None, unit: str) -> None:
        """Replace the bar; ``unit``: "B" for bytes, or a plural noun."""
        self.close()
        if self._shown:
            unit, is_bytes = unit if unit == "B" else f" {unit}", unit == "B"
            self._bar = open_bar(True, desc=name, total=total, unit=unit, unit_scale=is_bytes)

    def advance(self, done: int) -> None:
        """Add units that are done."""
        if self._bar is not None:
            self._bar.update(done)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _print_summary(summary: dict[str, Any], job: Job) -> None:
    print(f"{'size':>12} {'clusters':>10} {'articles':>10}")
    for row in summary["cluster_sizes"]:
        if row["clusters"]:
            print(f"{row['size']:>12} {row['clusters']:>10,} {row['articles']:>10,}")
    print(f"\n{'words':>12} {'articles':>10} {'clustered':>10} {'removed':>10}")
    for row in summary["lengths"]:
        if row["articles"]:
            numbers = " ".join(f"{row[name]:>10,}" for name in ("articles", "in_clusters", "removed"))
            print(f"{row['words']:>12} {numbers}")
    for cut in summary["cuts"]:
        removed = f"{counted(cut['links_cut'], 'link')} removed"
        print(f"split: a component of {cut['articles']:,} texts, {removed}", file=sys.stderr)
    if not (summary["articles"] or summary["bad_rows"]):
        print("the input has no rows, so the results are empty", file=sys.stderr)
    if bad := summary["bad_rows"]:
        print(f"{counted(bad, 'row')} left out, the first: {summary['first_bad_row']}", file=sys.stderr)
    if names := ", ".join(summary["text_columns"]):
        print(f"columns with values of no common type became text: {names}", file=sys.stderr)
    if problem := repeated_ids_problem(summary["repeated_ids"], "id, file and row"):
        print(problem, file=sys.stderr)
    dates = DateCounts(**summary["dates"])
    undated = summary["articles"] - dates.stated + dates.unread
    if dates.unread or (undated and summary["within"]):
        effect = f"{undated:,} of {summary['articles']:,} rows are undated"
        effect += ": --within does not hold for them" if summary["within"] else ""
        print("; ".join(filter(None, [dates.problem(), effect])), file=sys.stderr)
    if (bare := summary["articles"] - summary["rows_with_text"]) and not job.by_headline:
        print(f"rows without a text or html: {bare:,}; removed only with --by-headline", file=sys.stderr)
    print(
        f"{counted(summary['articles'], 'article')}, {counted(summary['clusters'], 'cluster')}, "
        f"{counted(summary['removed'], 'duplicate')} removed; {summary['total_seconds']:.1f} s "
        f"({summary['articles_per_second']:,.0f}/s), peak memory {summary['peak_memory_gb']:.2f} GB; "
        f"{job.out_dir}",
        file=sys.stderr,
    )
