"""Alerts of the first day with and without the days before (``scripts/bench learning``).

    scripts/bench learning [EVENTS.json ...] [--days N] [--show]

For each window of the files (default: ``events_dev.json``) a detector starts at 00:00 UTC of the day before
the known event and reads one day of headlines

* cold: it knows nothing of the stream;
* learned: it took the lesson of the ``--days`` (default: all) before, as `aggregator learn` gives it;
* live: it read those days itself.

Prints the alerts of that day, and how many of them the live detector does not make: those are false, as far
as a week of history can tell. Two alerts are the same if the smaller one has half of its items in the other.
``--show`` prints the headlines of the alerts (do not commit them).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aggregator.events.detection import BurstDetector, BurstRule, Event
from aggregator.offline.evaluation.events import read_known_events
from aggregator.offline.jsonl import read_rows
from aggregator.offline.lesson import build_lesson
from aggregator.offline.replay import make_detector, parse_time_ms, read_items
from aggregator.time_units import DAY_MS
from tests.support.development_data import DATA

SAME_EVENT_SHARE = 0.5
Rows = Sequence[dict[str, Any]]


def main() -> None:
    options = _options()
    totals: dict[str, list[int]] = {}
    print(f"{'window':<44}{'cold':>9}{'learned':>9}{'live':>9}   (alerts/false)")
    for file in options.events or [str(DATA / "events_dev.json")]:
        for known in read_known_events(Path(file)):
            rows = list(read_rows([str(DATA / known.window_file)]))
            start_ms = known.day_ms - DAY_MS
            counts = _count_alerts(rows, start_ms, start_ms - options.days * DAY_MS, show=options.show)
            for name, (alerts, false) in counts.items():
                total = totals.setdefault(name, [0, 0])
                total[0], total[1] = total[0] + alerts, total[1] + false
            shown = "".join(f"{f'{alerts}/{false}':>9}" for alerts, false in counts.values())
            print(f"{known.name[:43]:<44}{shown}", flush=True)
    shown = "".join(f"{f'{total[0]}/{total[1]}':>9}" for total in totals.values())
    print(f"{'total':<44}{shown}")


def _count_alerts(rows: Rows, start_ms: int, learn_from_ms: int, *, show: bool) -> dict[str, tuple[int, int]]:
    """(alerts, those that the live detector does not make) of the day from ``start_ms``, by variant."""
    times = [parse_time_ms(row.get("published_at")) or 0 for row in rows]
    before = [r for r, at_ms in zip(rows, times, strict=True) if learn_from_ms <= at_ms < start_ms]
    day = [r for r, at_ms in zip(rows, times, strict=True) if start_ms <= at_ms < start_ms + DAY_MS]
    rule = BurstRule()
    cold, learned, live = make_detector(rule), make_detector(rule), make_detector(rule)
    learned.tick(start_ms)
    for part in build_lesson(before, rule, start_ms).parts():
        learned.learn(part)
    _alerts(live, before)
    alerts = {
        name: _alerts(detector, day)
        for name, detector in (("cold", cold), ("learned", learned), ("live", live))
    }
    counts = {}
    for name, events in alerts.items():
        false = [event for event in events if not any(_is_same(event, other) for other in alerts["live"])]
        counts[name] = len(events), len(false)
        for event in events if show else ():
            print(f"  {name}: {event.size:>4} {'false' if event in false else '     '} {event.title}")
    return counts


def _alerts(detector: BurstDetector, rows: Rows) -> list[Event]:
    """The last version of each event that fires while these rows are read."""
    fired: dict[str, Event] = {}
    for item in read_items(rows, detector):
        detector.observe(item, item.arrived_ms)
        for change in detector.drain_changes():
            if change.kind == "fired" or change.event.id in fired:
                fired[change.event.id] = change.event
    return list(fired.values())


def _is_same(a: Event, b: Event) -> bool:
    shared = len(set(a.items) & set(b.items))
    return shared >= SAME_EVENT_SHARE * min(len(a.items), len(b.items))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("events", nargs="*", metavar="EVENTS.json")
    parser.add_argument("--days", type=int, default=8)
    parser.add_argument("--show", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
