"""How many items a second does the burst detector take, and how much memory does it hold?

    scripts/bench events [FILE] [--since MONTH] [--rows N] [--alerts FILE] [--whole]

FILE: dated headlines (default: the year of AGGREGATOR_DATA), from the month ``--since`` (2007-12) on. Rows are
turned into items first, some thousand at a time, so the figure is that of the state machine alone, in seconds of
CPU; ``--whole`` times reading and tokenising with it, as `aggregator replay` does. One process, one thread.
Prints for every month of the stream items/s, open stories, items in the window, size of the saved state, resident
memory, and alerts a day; ``--alerts`` writes one line per event for people to read (do not commit it).

The dictionaries of the tokenisers are loaded before the first item: one headline that passes for Chinese
brings 40 MB into the process, whenever in the year it comes.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aggregator.analysis.text import language, tokenizer
from aggregator.domain import StreamItem
from aggregator.events.detection import BurstDetector, BurstRule, Event
from aggregator.offline.jsonl import read_rows as read_rows
from aggregator.offline.replay import read_items, rfc3339
from tests.support.development_data import DATA
from tests.support.processes import resident_bytes

AT_ONCE = 5_000
MINUTE_MS = 60_000
DAY_MS = 86_400_000


def main() -> None:
    """Run and print."""
    options = _options()
    detector = BurstDetector(BurstRule())
    rows = (row for row in read_rows([options.file]) if str(row.get("published_at")) >= options.since)
    items = read_items(itertools.islice(rows, options.rows), detector)
    _warm()
    alerts: dict[str, str] = {}
    print(
        f"{'month':<8}{'items':>9} {'items/s':>9} {'stories':>8} {'window':>7} {'state MB':>9} {'RSS MB':>7} {'alerts/day':>11}"
    )
    total, spent_s = 0, 0.0
    for month, group in itertools.groupby(items, lambda item: rfc3339(item.arrived_ms)[:7]):
        known = len(alerts)
        count, took_s, days = _feed(detector, group, alerts, whole=options.whole)
        total, spent_s = total + count, spent_s + took_s
        print(
            f"{month:<8}{count:>9} {count / took_s:>9.0f} {len(detector.stories.by_key):>8} {len(detector.window):>7} "
            f"{len(detector.dump()) / 1e6:>9.2f} {_resident_mb():>7.0f} {(len(alerts) - known) / days:>11.2f}",
            flush=True,
        )
    print(f"{total} items, {total / spent_s:.0f} items/s, {len(alerts)} alerts")
    if options.alerts:
        Path(options.alerts).write_text("".join(alerts.values()), encoding="utf-8")


def _warm() -> None:
    for lang, text in (("en", "news"), ("zh", "新闻"), (None, "noticias de hoy")):
        tokenizer.tokenize(text, lang or language.detect_language(text, None))


def _feed(
    detector: BurstDetector, items: Iterator[StreamItem], alerts: dict[str, str], *, whole: bool
) -> tuple[int, float, int]:
    """Feed them all; returns how many, the seconds of CPU, and the days that have items."""
    count, minute, took_s, days = 0, -1, 0.0, set()
    while True:
        start_s = time.process_time()
        part, changes = list(itertools.islice(items, AT_ONCE)), detector.drain_changes()
        if not whole:
            start_s = time.process_time()
        for item in part:
            detector.observe(item, item.arrived_ms)
            if item.arrived_ms // MINUTE_MS != minute:
                minute = item.arrived_ms // MINUTE_MS
                changes += detector.drain_changes()
        took_s += time.process_time() - start_s
        # The last word on an event is its line.
        alerts.update((change.event.id, _line(change.event)) for change in changes)
        if not part:
            return count, took_s, len(days)
        count += len(part)
        days.update(item.arrived_ms // DAY_MS for item in part)


def _line(event: Event) -> str:
    return (
        f"{rfc3339(event.detected_at_ms)}\t{event.size}\t{event.peak}\t{event.expected}\t"
        f"{' '.join(event.terms[:5])}\t{event.title}\n"
    )


def _resident_mb() -> float:
    return resident_bytes() / 1e6


def _options() -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?", default=str(DATA / "reuters_titles_2007.jsonl.gz"))
    parser.add_argument("--since", default="", metavar="MONTH")
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--alerts")
    parser.add_argument("--whole", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
