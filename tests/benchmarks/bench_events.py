"""How many items a second does the burst detector take, and how much memory does it hold?

    scripts/bench events [FILE] [--rows N] [--alerts FILE] [--whole]

FILE: dated headlines (default: the year of AGGREGATOR_DATA). Rows are turned into items first, so the figure is
that of the state machine alone; ``--whole`` times reading and tokenising with it, as `aggregator replay`
does. One process, one thread. Prints for every month of the stream items/s, open stories, size of the saved state
and resident memory; ``--alerts`` writes one line per event for people to read (do not commit it).
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aggregator.bursts import BurstDetector, BurstRule, Event
from aggregator.domain import StreamItem
from aggregator.reading import rows as read_rows
from aggregator.replay import read_items, rfc3339


def main() -> None:
    """Run and print."""
    options = _options()
    detector = BurstDetector(BurstRule())
    rows = itertools.islice(read_rows([options.file]), options.rows)
    items = read_items(rows, detector)
    events: dict[str, Event] = {}
    print(
        f"{'month':<8}{'items':>9} {'items/s':>9} {'stories':>8} {'window':>7} {'state MB':>9} {'RSS MB':>7} {'alerts':>7}"
    )
    total = count = 0
    spent_s = 0.0
    for month, group in itertools.groupby(items, lambda item: rfc3339(item.arrived_ms)[:7]):
        part = _ready(group, wait=not options.whole)
        start_s = time.process_time()
        count = _feed(detector, part, events)
        took_s = time.process_time() - start_s
        total, spent_s = total + count, spent_s + took_s
        print(
            f"{month:<8}{total:>9} {count / took_s:>9.0f} {len(detector.stories.open):>8} {len(detector.window):>7} "
            f"{len(detector.dump()) / 1e6:>9.2f} {_resident_mb():>7.0f} {len(events):>7}",
            flush=True,
        )
    print(f"{total} items, {total / spent_s:.0f} items/s, {len(events)} alerts")
    if options.alerts:
        Path(options.alerts).write_text("".join(_line(e) for e in events.values()), encoding="utf-8")


def _ready(group: Iterable[StreamItem], *, wait: bool) -> Iterable[StreamItem]:
    """Items that were read and tokenised before they are fed, or that are meanwhile."""
    return list(group) if wait else group


def _feed(detector: BurstDetector, items: Iterable[StreamItem], events: dict[str, Event]) -> int:
    count, minute = 0, -1
    for item in items:
        detector.observe(item, item.arrived_ms)
        if item.arrived_ms // 60_000 != minute:
            minute = item.arrived_ms // 60_000
            events.update((change.event.id, change.event) for change in detector.changes())
        count += 1
    return count


def _line(event: Event) -> str:
    return (
        f"{rfc3339(event.detected_at_ms)}\t{event.size}\t{event.peak}\t{event.expected}\t"
        f"{' '.join(event.terms[:5])}\t{event.title}\n"
    )


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _options() -> Any:
    data = os.environ.get("AGGREGATOR_DATA", "../shared/data")
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?", default=f"{data}/reuters_titles_2007.jsonl.gz")
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--alerts")
    parser.add_argument("--whole", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
