"""Throughput and memory of the burst detector (``scripts/bench events``).

    scripts/bench events [FILE] [--since MONTH] [--rows N] [--turns N] [--alerts FILE] [--whole]

FILE holds dated headlines (default: one year, from the development data); rows before the month ``--since``
(for example 2007-12) are skipped. With ``--turns 2`` the rows come once more, dated 53 weeks later: what the
memory grows by then is not the filling of tables and caches. Rows are converted to items first, in chunks, so
the time is the CPU time of the detector alone; with ``--whole`` it includes reading and tokenizing, as in
`aggregator replay`. One process, one thread. Prints per month: items/s, open stories, items in the window,
size of the saved state, resident memory, and alerts per day; at the end the slope of the memory by least
squares, without the first quarter, in which the tables fill. ``--alerts`` writes the events as `aggregator
replay` does; do not commit them.

The tokenizers' dictionaries are loaded before the first item: a single headline detected as Chinese loads 40
MB, whichever month it is in.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aggregator.analysis.text import language, tokenizer
from aggregator.domain import StreamItem
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import BurstRule
from aggregator.events.event import Event
from aggregator_archive.replay import event_row, make_detector, parse_time_ms, read_items, rfc3339
from aggregator_archive.rows import read_rows
from tests.support.development_data import DATA
from tests.support.processes import resident_bytes

CHUNK_ITEMS = 5_000
MINUTE_MS = 60_000
DAY_MS = 86_400_000
TURN_MS = 53 * 7 * DAY_MS


def main() -> None:
    options = _options()
    detector = make_detector(BurstRule())
    items = read_items(_rows(options), detector.rule)
    _load_dictionaries()
    alerts: dict[str, str] = {}
    print(
        f"{'month':<8}{'items':>9} {'items/s':>9} {'stories':>8} {'window':>7} {'state MB':>9} {'RSS MB':>7} "
        f"{'alerts/day':>11}"
    )
    total, spent_s = 0, 0.0
    memory: list[tuple[float, float]] = []  # (items so far in 100,000, MB)
    for month, group in itertools.groupby(items, lambda item: rfc3339(item.arrived_ms)[:7]):
        earlier_alerts = len(alerts)
        count, took_s, days = _feed(detector, group, alerts, memory, whole=options.whole)
        total, spent_s = total + count, spent_s + took_s
        print(
            f"{month:<8}{count:>9} {count / took_s:>9.0f} {len(detector.clusters.by_key):>8} "
            f"{len(detector.window):>7} {len(detector.dump()) / 1e6:>9.2f} {_resident_mb():>7.0f} "
            f"{(len(alerts) - earlier_alerts) / days:>11.2f}",
            flush=True,
        )
    print(f"{total} items, {total / spent_s:.0f} items/s, {len(alerts)} alerts")
    if len(later := memory[len(memory) // 4 :]) > 2:
        slope, error = _slope(later)
        print(f"memory: {slope:+.2f} MB per 100,000 items, standard error {error:.2f}")
    if options.alerts:
        Path(options.alerts).write_text("".join(alerts.values()), encoding="utf-8")


def _rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for turn in range(options.turns):
        rows = (row for row in read_rows([options.file]) if str(row.get("published_at")) >= options.since)
        for row in itertools.islice(rows, options.rows):
            at_ms = parse_time_ms(row.get("published_at"))
            if turn and at_ms is not None:
                yield {**row, "published_at": rfc3339(at_ms + turn * TURN_MS)}
            else:
                yield row


def _load_dictionaries() -> None:
    for lang, text in (("en", "news"), ("zh", "新闻"), (None, "noticias de hoy")):
        tokenizer.tokenize(text, lang or language.detect_language(text, None))


def _feed(
    detector: BurstDetector,
    items: Iterator[StreamItem],
    alerts: dict[str, str],
    memory: list[tuple[float, float]],
    *,
    whole: bool,
) -> tuple[int, float, int]:
    """Feed all items; returns their number, the seconds of CPU, and the number of days with items.

    Adds the last version of each event to ``alerts``, and one sample per chunk to ``memory``.
    """
    fed = memory[-1][0] if memory else 0.0
    count, minute, took_s = 0, -1, 0.0
    days: set[int] = set()
    while True:
        start_s = time.process_time()
        chunk, changes = list(itertools.islice(items, CHUNK_ITEMS)), detector.drain_changes()
        if not whole:
            start_s = time.process_time()
        for item in chunk:
            detector.observe(item, item.arrived_ms)
            if item.arrived_ms // MINUTE_MS != minute:
                minute = item.arrived_ms // MINUTE_MS
                changes += detector.drain_changes()
        took_s += time.process_time() - start_s
        # The last change of an event determines its line.
        alerts.update((change.event.id, _line(Event.of(change.event))) for change in changes)
        if not chunk:
            return count, took_s, len(days)
        count += len(chunk)
        days.update(item.arrived_ms // DAY_MS for item in chunk)
        memory.append((fed + count / 1e5, _resident_mb()))


def _slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Slope of the least-squares line through at least three points, and its standard error."""
    xs, ys = zip(*points, strict=True)
    slope, intercept = statistics.linear_regression(xs, ys)
    squares = sum((y - intercept - slope * x) ** 2 for x, y in points)
    return slope, math.sqrt(squares / (len(points) - 2) / (statistics.pvariance(xs) * len(points)))


def _line(event: Event) -> str:
    return json.dumps(event_row(event)) + "\n"


def _resident_mb() -> float:
    return resident_bytes() / 1e6


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", default=str(DATA / "reuters_titles_2007.jsonl.gz"))
    parser.add_argument("--since", default="", metavar="MONTH")
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--alerts")
    parser.add_argument("--whole", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
