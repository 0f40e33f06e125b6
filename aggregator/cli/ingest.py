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

from aggregator.cli.ingest_targets import LocalStore, Server, Target
from aggregator.cli.progress import Progress
from aggregator.errors import ConfigurationError
from aggregator.offline import jsonl
from aggregator.offline.jsonl import Line
from aggregator.runtime.addresses import url_of
from aggregator.runtime.event_loop import run_loop, settle_in
from aggregator.runtime.exit_codes import OK, SOME_BAD
from aggregator.settings import Settings

BATCH_LINES, BATCH_BYTES = 512, 1_000_000
PARALLEL_BYTES = 4_000_000  # a file above this is worth starting processes that analyse it
LABELS = (b'"cluster"', b'"original"')  # columns of evaluation files, not of articles


def run(args: argparse.Namespace, settings: Settings) -> int:
    """0 when every line got a verdict, 1 when some were bad. Raises for what stops all of it."""
    jsonl.check_readable(args.files)
    check_where(args)
    return run_loop(_run(args, settings))


def check_where(args: argparse.Namespace) -> None:
    """Raise ConfigurationError for options that contradict one another."""
    if args.store is not None and args.server is not None:
        raise ConfigurationError("store: give either --store or --server, not both.")
    if args.store is None and args.policy is not None:
        raise ConfigurationError("policy: a server decides by its own setting; use --policy with --store.")


@asynccontextmanager
async def opened_target(args: argparse.Namespace, settings: Settings) -> AsyncIterator[Target]:
    """``--store``, ``--server``, or else the local server."""
    if args.store is None:
        async with Server.open(args.server or url_of(settings.host, settings.port), settings.key) as server:
            yield server
        return
    processes = _processes(args.files)
    async with LocalStore.open(settings, processes) as store:
        if processes:
            settle_in()
        yield store


def _processes(files: list[str]) -> int:
    size = jsonl.total_bytes(files)
    return min(4, os.cpu_count() or 1) if size is not None and size > PARALLEL_BYTES else 0


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    started_s = time.monotonic()
    counts: Counter[str] = Counter()
    with (
        Progress(jsonl.total_bytes(args.files), shown=not args.no_progress) as progress,
        jsonl.writing(args.out) as write,
    ):
        lines = jsonl.lines(args.files, max_line_bytes=settings.max_body_bytes, progress=progress.advance)
        async with opened_target(args, settings) as target:
            for batch in batches(map(without_labels, lines)):
                for reply in await target.send(batch, dry_run=args.command == "check"):
                    write(reply.data)
                    counts[reply.verdict or "bad"] += 1
                progress.show(counts, target.gave_way_s)
            gave_way_s = target.gave_way_s
    print(summary(counts, time.monotonic() - started_s, gave_way_s), file=sys.stderr)
    return SOME_BAD if counts["bad"] else OK


def batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
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


def without_labels(line: Line) -> Line:
    """The line without ``cluster`` and ``original``, which labelled files carry beside the article."""
    if not any(label in line.data for label in LABELS):
        return line
    try:
        row = msgspec.json.decode(line.data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return line  # whoever decodes it next says what is wrong
    if not isinstance(row, dict) or not ({"cluster", "original"} & row.keys()):
        return line
    kept = {name: value for name, value in row.items() if name not in ("cluster", "original")}
    return dataclasses.replace(line, data=msgspec.json.encode(kept))


def summary(counts: Counter[str], seconds: float, gave_way_s: float = 0.0) -> str:
    """One line for a person: how many of each, how fast, and what of the time went to others."""
    total = counts.total()
    named = ", ".join(f"{counts[name]} {name}" for name in ("new", "related", "duplicate", "bad"))
    gave_way = f", of which {gave_way_s:.2f} s gave way to single posts" if gave_way_s >= 0.01 else ""
    return f"{total} lines: {named}; {seconds:.1f} s ({total / max(seconds, 1e-9):.0f}/s){gave_way}"
