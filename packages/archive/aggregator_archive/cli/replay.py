"""``aggregator replay``: dated articles through event detection, using their timestamps."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from aggregator import jsonl
from aggregator.app import build_burst_rule
from aggregator.cli.progress import item_progress
from aggregator.errors import EXIT_OK
from aggregator.settings import Settings
from aggregator_archive import replay as replaying
from aggregator_archive.dates import require_dated
from aggregator_archive.rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from aggregator.events.detection.model import BurstRule

    Rows = Iterable[dict[str, Any]]
    Write = Callable[[bytes], None]


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Write one line per event, or with ``--preview`` the number of alerts. Raises InvalidInput."""
    jsonl.check_readable(args.files)
    rule, counts = build_burst_rule(settings), Counter[str]()
    with (
        item_progress("articles", shown=not args.no_progress) as show_count,
        jsonl.open_output(args.out) as write,
    ):
        rows = require_dated(_counted(read_rows(args.files), counts, show_count))
        if args.preview is not None:
            _write_preview(rows, rule, args.preview, write)
            return EXIT_OK
        for event in replaying.replay(rows, rule):
            write(msgspec.json.encode(event))
            counts["events"] += 1
    events = f"{counts['events']} event{'s' * (counts['events'] != 1)}"
    print(f"{counts['articles']} articles, {events}", file=sys.stderr)
    return EXIT_OK


def _counted(rows: Rows, counts: Counter[str], show_count: Callable[[int], None]) -> Iterator[dict[str, Any]]:
    for row in rows:
        counts["articles"] += 1
        show_count(counts["articles"])
        yield row


def _write_preview(rows: Rows, rule: BurstRule, span_ms: int, write: Write) -> None:
    """Write the number of alerts under these settings, and under half and twice the sensitivity."""
    previews = replaying.preview(rows, rule, span_ms)
    current = previews[1]
    since, until = replaying.rfc3339(current.since_ms), replaying.rfc3339(current.until_ms)
    write(f"alerts from {since} to {until}".encode())
    for preview in previews:
        mark = "  <- current setting" if preview is current else ""
        write(f"sensitivity {preview.sensitivity:<6g}{len(preview.alerts):>6}{mark}".encode())
    for event in current.alerts:
        detected = replaying.rfc3339(event.detected_at_ms)
        write(f"{detected}  {event.size:>5} items  {event.title}".encode())
