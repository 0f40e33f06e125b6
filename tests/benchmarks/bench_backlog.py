"""Alerts of a fresh detector that receives days of a recording within two minutes.

    python -m tests.benchmarks.bench_backlog [FILE] [--since TIME] [--rows N] [--minutes X]

Sends ``--rows`` headlines of FILE from the time ``--since`` on, evenly within ``--minutes``: first with their
dates, then without, as a site does that imports its archive. Prints the alerts of both for review (do not
commit them).
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace

from aggregator.domain import StreamItem
from aggregator.events.detection import BurstRule, Event
from aggregator.offline.jsonl import read_rows
from aggregator.offline.replay import make_detector, parse_time_ms, read_items, rfc3339
from aggregator.time_units import MINUTE_MS
from tests.support.development_data import DATA


def alerts(items: list[StreamItem], minutes: float, *, dated: bool) -> list[Event]:
    """The events of a fresh detector that receives these items at once."""
    detector = make_detector(BurstRule())
    start_ms = items[-1].arrived_ms
    found: dict[str, Event] = {}
    for number, item in enumerate(items):
        now_ms = start_ms + round(number * minutes * MINUTE_MS / len(items))
        published_ms = item.published_at_ms if dated else None
        detector.observe(replace(item, arrived_ms=now_ms, published_at_ms=published_ms), now_ms)
    detector.tick(start_ms + round((minutes + 1) * MINUTE_MS))
    found.update((change.event.id, change.event) for change in detector.drain_changes())
    return sorted(found.values(), key=lambda event: event.detected_at_ms)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "file", nargs="?", default=str(DATA / "window_20110515_strauss-kahn-arrested.jsonl.gz")
    )
    parser.add_argument("--since", default="2011-05-10T06:00:00Z")
    parser.add_argument("--rows", type=int, default=14_000)
    parser.add_argument("--minutes", type=float, default=2.0)
    options = parser.parse_args()
    since_ms = parse_time_ms(options.since) or 0
    rows = (row for row in read_rows([options.file]) if (parse_time_ms(row["published_at"]) or 0) >= since_ms)
    items = list(read_items(itertools.islice(rows, options.rows), make_detector(BurstRule())))
    hours = (items[-1].arrived_ms - items[0].arrived_ms) / 3_600_000
    print(f"{len(items)} headlines of {hours:.0f} h within {options.minutes:g} min")
    for dated in (True, False):
        events = alerts(items, options.minutes, dated=dated)
        print(f"{'with' if dated else 'without'} dates: {len(events)} alerts")
        for event in events:
            print(f"  {event.size}\t{event.expected}\t{rfc3339(event.first_seen_ms)}\t{event.title}")


if __name__ == "__main__":
    main()
