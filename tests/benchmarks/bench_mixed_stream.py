"""Events of a stream that is mixed of two recordings.

    python -m tests.benchmarks.bench_mixed_stream [--hours N] [--file FILE --day DAY] [--before DAYS]
        [--other FILE --other-day DAY] [--pattern REGEX]

Takes the last ``--hours`` of a recording up to the end of ``--day``, and one day of another recording, moved
to ``--before`` days before that day. So a subject of the other day seems usual: by default an earthquake that
many outlets reported, the day before the earthquake of 11 March 2011 on a newswire. Prints each event with
the share of its first 16 headlines that match ``--pattern``, and no headlines.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any

from aggregator.events.detection import BurstRule
from aggregator.offline.evaluation.events import JUDGED_ITEMS
from aggregator.offline.jsonl import read_rows
from aggregator.offline.replay import changed_events, parse_time_ms, rfc3339
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.support.development_data import DATA


def main() -> None:
    options = _options()
    day_ms, other_ms = parse_time_ms(options.day) or 0, parse_time_ms(options.other_day) or 0
    end_ms = day_ms + DAY_MS
    moved_ms = day_ms - options.before * DAY_MS - other_ms
    rows = _rows_between(options.file, end_ms - options.hours * HOUR_MS, end_ms)
    for row in _rows_between(options.other, other_ms, other_ms + DAY_MS):
        rows.append({**row, "id": f"other-{row['id']}", "published_at": rfc3339(_time_ms(row) + moved_ms)})
    rows.sort(key=_time_ms)
    titles = {str(row["id"]): str(row["title"]) for row in rows}
    pattern = re.compile(options.pattern, re.IGNORECASE)
    last = {event.id: event for event, _ in changed_events(rows, BurstRule())}
    for event in sorted(last.values(), key=lambda event: event.detected_at_ms):
        matching = sum(bool(pattern.search(titles[item])) for item in event.items[:JUDGED_ITEMS])
        print(
            f"{rfc3339(event.detected_at_ms)} {event.size:>4} items, {event.expected:>5.2f} usual, "
            f"{matching} of {JUDGED_ITEMS} match, {' '.join(event.terms[:3])}"
        )
    print(f"{len(rows)} headlines, {len(last)} events")


def _rows_between(file: str, start_ms: int, end_ms: int) -> list[Mapping[str, Any]]:
    return [row for row in read_rows([str(DATA / file)]) if start_ms <= _time_ms(row) < end_ms]


def _time_ms(row: Mapping[str, Any]) -> int:
    return parse_time_ms(row.get("published_at")) or 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=int, default=48)
    parser.add_argument("--file", default="reuters_window_20110311.jsonl.gz")
    parser.add_argument("--day", default="2011-03-11")
    parser.add_argument("--other", default="headlines_en_dev.jsonl.gz")
    parser.add_argument("--other-day", default="2025-07-30")
    parser.add_argument("--before", type=int, default=1)
    parser.add_argument("--pattern", default="japan|quake|tsunami")
    return parser.parse_args()


if __name__ == "__main__":
    main()
