"""``aggregator ingest`` and ``aggregator check``: one verdict line per line of the article files."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from aggregator import jsonl
from aggregator.cli.ingest_targets import check_target_options, open_target
from aggregator.cli.progress import THROTTLED_LABEL, open_bar, show_counts
from aggregator.errors import EXIT_OK, EXIT_PARTIAL_FAILURE, StoreUnavailable
from aggregator.jsonl import Line
from aggregator.runtime.event_loop import run_loop
from aggregator.settings import Settings
from aggregator_client.decision import JsonDates
from aggregator_client.outcomes import unread_summary

BATCH_LINES, BATCH_BYTES = 512, 1_000_000
LABELS = ("cluster", "original")  # columns of evaluation files, which articles do not have
LABEL_KEYS = tuple(f'"{label}"'.encode() for label in LABELS)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Exit code 0 if all lines got a verdict, 1 if some were invalid. Raises for errors of the whole run."""
    jsonl.check_readable(args.files, as_lines=True)
    check_target_options(args)
    return run_loop(_run(args, settings))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    started_s = time.monotonic()
    counts, kept, throttled_s, dates = Counter[str](), 0, 0.0, JsonDates(args.timezone)
    first_bad = b""
    with (
        open_bar(not args.no_progress, total=jsonl.total_bytes(args.files), unit="B", unit_scale=True) as bar,
        jsonl.open_output(args.out) as write,
    ):
        lines = jsonl.read_lines(args.files, max_line_bytes=settings.max_body_bytes, progress=bar.update)
        rows = (dataclasses.replace(line, data=dates.convert(line.data)) for line in map(strip_labels, lines))
        try:
            async with open_target(args, settings) as target:
                for batch in iter_batches(rows):
                    async for reply in target.send(batch, dry_run=args.command == "check"):
                        write(reply.data)
                        counts[reply.verdict or "bad"] += 1
                        first_bad = first_bad or (b"" if reply.verdict else reply.data)
                        kept += reply.keep and reply.verdict == "duplicate"
                    show_counts(bar, counts, throttled=target.throttled_s > throttled_s)
                    throttled_s = target.throttled_s
        except StoreUnavailable as error:
            answered = f"{counts.total()} lines are answered; repeat the command for the others."
            raise StoreUnavailable(f"{error} {answered}" if counts else str(error)) from error
    elapsed_s = time.monotonic() - started_s
    rate = f"{elapsed_s:.1f} s ({counts.total() / max(elapsed_s, 1e-9):.0f}/s)"
    paused = f", of which {throttled_s:.2f} s {THROTTLED_LABEL}" if throttled_s >= 0.01 else ""
    in_spite = f" ({kept} duplicates with news)" if kept else ""
    print(f"{format_counts(counts)}{in_spite}; {rate}{paused}", file=sys.stderr)
    if first_bad:
        print(f"The first bad line: {msgspec.json.decode(first_bad)['error']['detail']}", file=sys.stderr)
    if dates.unread:
        print(unread_summary(dates.unread, "rows", repr(dates.example)), file=sys.stderr)
    return EXIT_PARTIAL_FAILURE if counts["bad"] else EXIT_OK


def iter_batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Batches of at most BATCH_LINES lines and BATCH_BYTES bytes; a longer line is a separate batch."""
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
    """The line without ``LABELS``."""
    if not any(label in line.data for label in LABEL_KEYS):
        return line
    try:
        row = msgspec.json.decode(line.data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return line  # the decoder of articles reports the error
    if not isinstance(row, dict) or not row.keys() & set(LABELS):
        return line
    kept = {name: value for name, value in row.items() if name not in LABELS}
    return dataclasses.replace(line, data=msgspec.json.encode(kept))


def format_counts(counts: Counter[str]) -> str:
    """``6 lines: 2 new, 0 related, 1 duplicate, 3 bad``."""
    named = ", ".join(f"{counts[name]} {name}" for name in ("new", "related", "duplicate", "bad"))
    return f"{counts.total()} lines: {named}"
