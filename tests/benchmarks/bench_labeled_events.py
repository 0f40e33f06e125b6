"""Events of a stream in which every item is labelled with its story.

    python -m tests.benchmarks.bench_labeled_events [FILE] [--list]

FILE has the story of each row in ``cluster`` (default: many outlets, 36 hours, from the development data). An
event belongs to the story that most of its items have. Prints

* **found**: stories of ``STORY_ITEMS`` or more items that have an event;
* **purity**: share of the items of all events that have the story of their event;
* **completeness**: share of the items of the found stories that are in an event of their story;
* **extra**: events beyond one per story, as a share of the events.

``--list`` prints the stories that were not found, with the number of their items and the most within 4 hours,
and the headlines of the extra events (do not commit them).
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict

from aggregator.events.detection import BurstRule
from aggregator.offline.jsonl import read_rows
from aggregator.offline.replay import changed_events, parse_time_ms
from aggregator.time_units import HOUR_MS
from tests.support.development_data import DATA

STORY_ITEMS = 20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", default=str(DATA / "uci_stories_dev.jsonl.gz"))
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    rows = [row for row in read_rows([options.file]) if row.get("cluster")]
    story_of = {str(row["id"]): str(row["cluster"]) for row in rows}
    times: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        times[str(row["cluster"])].append(parse_time_ms(row["published_at"]) or 0)
    large = {story for story, at in times.items() if len(at) >= STORY_ITEMS}

    last = {event.id: event for event, _ in changed_events(rows, BurstRule())}
    events = [event for event in last.values() if event.merged_into is None]
    right: Counter[str] = Counter()  # items in the event of the story that they are labelled with, by story
    by_story: dict[str, list[str]] = defaultdict(list)
    listed = 0
    for event in sorted(events, key=lambda event: event.detected_at_ms):
        counts = Counter(story_of[item] for item in event.items if item in story_of)
        story, count = counts.most_common(1)[0]
        by_story[story].append(f"{event.size} items, {count} of the story: {event.title}")
        right[story] += count
        listed += counts.total()
    found = large & by_story.keys()
    extra = len(events) - len(by_story)
    if options.list:
        for story in sorted(large - found):
            print(f"not found: {story}, {len(times[story])} items, {_most_in_window(times[story])} in 4 h")
        for story, titles in by_story.items():
            for title in titles[1:]:
                print(f"extra of {story}: {title}")
    total = sum(len(times[story]) for story in found)
    print(
        f"found {len(found)} of {len(large)}, purity {right.total() / max(1, listed):.3f}, completeness "
        f"{sum(right[story] for story in found) / max(1, total):.3f}, {len(events)} events, {extra} extra "
        f"({extra / max(1, len(events)):.1%})"
    )


def _most_in_window(times: list[int]) -> int:
    """Largest number of these times within 4 hours."""
    ordered = sorted(times)
    return max(sum(start <= at <= start + 4 * HOUR_MS for at in ordered) for start in ordered)


if __name__ == "__main__":
    main()
