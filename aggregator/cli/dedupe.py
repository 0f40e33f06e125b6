"""``aggregator dedupe``: an archive in; pairs, groups, a deduplicated copy and reports out."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from aggregator.errors import ConfigurationError
from aggregator.offline import jsonl
from aggregator.offline.archive.encode import Encoding
from aggregator.offline.archive.executors import open_pool
from aggregator.offline.archive.job import Job, Method, prepare_work_dir
from aggregator.offline.archive.output import table_file_name
from aggregator.offline.archive.peak_memory import track_peak_memory
from aggregator.offline.archive.pipeline import ProgressListener, run_pipeline
from aggregator.offline.archive.write_results import write_results
from aggregator.runtime.exit_codes import EXIT_OK, EXIT_PARTIAL_FAILURE
from aggregator.settings import Settings

ARTICLE_FIELDS = ("id", "title", "text", "html", "url", "source", "published_at", "lang")


def dedupe(args: argparse.Namespace, settings: Settings) -> int:
    """0 when every row was used, 1 when some were bad. Raises for what stops all of it."""
    job = build_job(args, settings)
    if args.load and args.no_copy:
        raise ConfigurationError("load: the deduplicated copy is what is loaded; leave --no-copy out.")
    if prepare_work_dir(job, fresh=args.fresh):
        print(f"going on with the work in {job.work_dir}", file=sys.stderr)
    told = ProgressBars(shown=not args.no_progress)
    try:
        with track_peak_memory() as peak:
            with open_pool(args.processes, args.dask or "") as pool:
                result = run_pipeline(job, pool, told)
            width = pool.worker_count if pool.executor else 1
            summary = write_results(
                job, result, told, worker_count=width, peak_memory=peak, keep_work=args.keep_work
            )
    finally:
        told.close()
    _print_summary(summary, job.out_dir)
    if args.load and _load_into_index(job, args, settings):
        return EXIT_PARTIAL_FAILURE
    return EXIT_PARTIAL_FAILURE if summary["bad_rows"] else EXIT_OK


def build_job(args: argparse.Namespace, settings: Settings) -> Job:
    """The job that the options describe. Raises ConfigurationError."""
    from aggregator.app import build_policy

    method = Method(
        encode=args.encode, verify=args.verify, cluster=args.cluster, radius_bits=args.radius, cosine=args.cosine,
        **({} if args.threshold is None else {"threshold": args.threshold}),
    )  # fmt: skip
    if args.cluster == "average" and not 0 <= method.threshold <= 1:
        raise ConfigurationError(f"threshold: a resemblance is from 0 to 1, not {method.threshold:g}.")
    encoding = Encoding(settings.models_dir, _parse_columns(args.column), args.lang or "", args.shingles)
    if (args.verify == "classifier") != bool(args.labelled):
        raise ConfigurationError("labelled: --verify classifier and --labelled FILE go together.")
    if args.labelled:
        method = replace(method, weights=_train_classifier(args.labelled, encoding, method))
    return Job(
        inputs=tuple(args.files),
        out_dir=Path(args.out),
        encoding=encoding,
        method=method,
        policy=build_policy(settings),
        within_ms=args.within,
        cap=args.cap,
        representative=args.representative,
        format=args.format,
        write_copy=not args.no_copy,
    )


def _train_classifier(file: str, encoding: Encoding, method: Method) -> tuple[float, ...]:
    """The weights of a classifier of pairs, from articles with a cluster each."""
    from aggregator.cli.fit_replay import parse_article, parse_label, read_rows
    from aggregator.offline.archive.classifier import train

    jsonl.check_readable([file])
    rows = list(read_rows([file]))
    labels = [parse_label(row, at) for at, row in enumerate(rows, 1)]
    return train([parse_article(row) for row in rows], labels, encoding, method.radius_bits)


def _load_into_index(job: Job, args: argparse.Namespace, settings: Settings) -> int:
    from aggregator.cli.load_archive import load

    return load(
        job.out_dir / table_file_name("deduplicated", job.format), dict(job.encoding.columns), args, settings
    )


def _parse_columns(options: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = [tuple(one.split("=", 1)) for one in options]
    wrong = [
        one
        for one, pair in zip(options, pairs, strict=True)
        if len(pair) != 2 or pair[0] not in ARTICLE_FIELDS
    ]
    if wrong:
        raise ConfigurationError(
            f"column: {wrong[0]!r} is not FIELD=COLUMN with a field of {', '.join(ARTICLE_FIELDS)}."
        )
    return tuple(sorted((field, column) for field, column in pairs))


class ProgressBars(ProgressListener):
    """A bar per stage on a terminal, with the time it will take."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown and sys.stderr.isatty()
        self._bar: Any = None

    def start_stage(self, name: str, total: int | None, unit: str) -> None:
        self.close()
        if self._shown:
            from tqdm import tqdm

            scaled = unit == "B"
            self._bar = tqdm(
                desc=name, total=total, unit=unit if scaled else f" {unit}", unit_scale=scaled,
                dynamic_ncols=True, leave=False,
            )  # fmt: skip

    def advance(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(done)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _print_summary(summary: dict[str, Any], out: Path) -> None:
    print(f"{'size':>12} {'clusters':>10} {'articles':>10}")
    for row in summary["cluster_sizes"]:
        if row["clusters"]:
            print(f"{row['size']:>12} {row['clusters']:>10,} {row['articles']:>10,}")
    for cut in summary["cuts"]:
        print(f"cut: a component of {cut['articles']:,} texts by {cut['links_cut']:,} links", file=sys.stderr)
    if summary["bad_rows"]:
        print(f"{summary['bad_rows']:,} bad rows, first {summary['first_bad_row']}", file=sys.stderr)
    print(
        f"{summary['articles']:,} articles, {summary['clusters']:,} clusters, {summary['removed']:,} copies "
        f"removed; {summary['total_seconds']:.1f} s ({summary['articles_per_second']:,.0f}/s), at most "
        f"{summary['peak_memory_gb']:.2f} GB; {out}",
        file=sys.stderr,
    )
