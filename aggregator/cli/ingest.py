"""``aggregator ingest`` and ``aggregator check``: article files in, one verdict line per input line out.

The order is kept, whatever happens to single lines: a bad one answers with its error and the rest go on.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager

import msgspec

from aggregator.cli.ingest_targets import IngestTarget, LocalTarget, ServerTarget
from aggregator.cli.progress import ByteProgress
from aggregator.errors import ConfigurationError
from aggregator.offline import jsonl
from aggregator.offline.jsonl import Line
from aggregator.runtime.addresses import service_url
from aggregator.runtime.event_loop import run_loop, tune_interpreter
from aggregator.runtime.exit_codes import EXIT_OK, EXIT_PARTIAL_FAILURE
from aggregator.settings import Settings

BATCH_LINES, BATCH_BYTES = 512, 1_000_000
PARALLEL_ABOVE_BYTES = 4_000_000  # a file above this is worth starting processes that analyse it
LABEL_KEYS = (b'"cluster"', b'"original"')  # columns of evaluation files, not of articles


def run(args: argparse.Namespace, settings: Settings) -> int:
    """0 when every line got a verdict, 1 when some were bad. Raises for what stops all of it."""
    jsonl.check_readable(args.files)
    check_target_options(args)
    return run_loop(_run(args, settings))


def check_target_options(args: argparse.Namespace) -> None:
    """Raise ConfigurationError for options that contradict one another."""
    if args.store is not None and args.server is not None:
        raise ConfigurationError("store: give either --store or --server, not both.")
    if args.store is None and args.policy is not None:
        raise ConfigurationError("policy: a server decides by its own setting; use --policy with --store.")


@asynccontextmanager
async def open_target(args: argparse.Namespace, settings: Settings) -> AsyncIterator[IngestTarget]:
    """``--store``, ``--server``, or else the local server."""
    if args.store is None:
        async with ServerTarget.open(
            args.server or service_url(settings.host, settings.port), settings.key
        ) as server:
            yield server
        return
    processes = _analysis_processes(args.files)
    async with LocalTarget.open(settings, processes) as store:
        if processes:
            tune_interpreter()
        yield store


def _analysis_processes(files: list[str]) -> int:
    size = jsonl.total_bytes(files)
    return min(4, os.cpu_count() or 1) if size is not None and size > PARALLEL_ABOVE_BYTES else 0


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    started_s = time.monotonic()
    counts: Counter[str] = Counter()
    with (
        ByteProgress(jsonl.total_bytes(args.files), shown=not args.no_progress) as progress,
        jsonl.open_output(args.out) as write,
    ):
        lines = jsonl.read_lines(
            args.files, max_line_bytes=settings.max_body_bytes, progress=progress.advance
        )
        async with open_target(args, settings) as target:
            for batch in iter_batches(map(strip_labels, lines)):
                for reply in await target.send(batch, dry_run=args.command == "check"):
                    write(reply.data)
                    counts[reply.verdict or "bad"] += 1
                progress.show_counts(counts, target.throttled_s)
            gave_way_s = target.throttled_s
    print(summary_line(counts, time.monotonic() - started_s, gave_way_s), file=sys.stderr)
    return EXIT_PARTIAL_FAILURE if counts["bad"] else EXIT_OK


def iter_batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lists of at most BATCH_LINES lines and BATCH_BYTES bytes (one line may be longer alone)."""
    batch: list[Line] = []
    size = 0
    for line in lines:
        if batch and (len(batch) >= BATCH_LINES or size + len(line.data) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line.data) + 1
    if batch:
        yield batch


def strip_labels(line: Line) -> Line:
    """The line without ``cluster`` and ``original``, which labelled files carry beside the article."""
    if not any(label in line.data for label in LABEL_KEYS):
        return line
    try:
        row = msgspec.json.decode(line.data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return line  # whoever decodes it next says what is wrong
    if not isinstance(row, dict) or not ({"cluster", "original"} & row.keys()):
        return line
    kept = {name: value for name, value in row.items() if name not in ("cluster", "original")}
    return dataclasses.replace(line, data=msgspec.json.encode(kept))


def summary_line(counts: Counter[str], elapsed_s: float, throttled_s: float = 0.0) -> str:
    """One line for a person: how many of each, how fast, and what of the time went to others."""
    total = counts.total()
    named = ", ".join(f"{counts[name]} {name}" for name in ("new", "related", "duplicate", "bad"))
    gave_way = f", of which {throttled_s:.2f} s gave way to single posts" if throttled_s >= 0.01 else ""
    return f"{total} lines: {named}; {elapsed_s:.1f} s ({total / max(elapsed_s, 1e-9):.0f}/s){gave_way}"
