"""Storylines over the days of four crises: links that are right, wrong and missing.

    python -m tests.benchmarks.bench_storylines [--data DIR]

The articles of one crisis on one day (``cltls_crisis_es_dev``, Spanish texts dated to the day) are one event
if there are at least three. Its profile is the sum of their term weights, as in ``detection/profile.py``. A
link to the storyline of another crisis is false. An event without a link is missed if the same crisis had one
in the 21 days before. The thresholds of the rule were chosen on other data.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from pathlib import Path

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.domain import Article
from aggregator.events.detection.profile import PROFILE_TERMS
from aggregator.events.storylines import LINK_MS, Storylines
from aggregator.offline.jsonl import read_rows
from aggregator.offline.replay import parse_time_ms
from aggregator.time_units import DAY_MS
from tests.support.development_data import DATA
from tests.support.factories import event

MIN_ARTICLES = 3


def profiles_by_day(path: Path) -> dict[tuple[int, str], tuple[tuple[str, float], ...]]:
    """(day in ms, crisis) -> profile, in order of time."""
    analyzer = Analyzer(load_models())
    sums: defaultdict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    counts: Counter[tuple[int, str]] = Counter()
    for row in read_rows([str(path)]):
        day_ms = parse_time_ms(row.get("published_at"))
        if day_ms is None:
            continue
        key = (day_ms // DAY_MS * DAY_MS, str(row["id"]).partition("/")[0])
        article = Article("a", title=str(row["title"]), text=str(row["text"]), lang=row["lang"])
        sums[key].update(dict(analyzer.analyze(article).terms))
        counts[key] += 1
    profiles = {}
    for key in sorted(sums):
        if counts[key] >= MIN_ARTICLES:
            heaviest = sums[key].most_common(PROFILE_TERMS)
            norm = math.sqrt(sum(weight**2 for _, weight in heaviest))
            profiles[key] = tuple((term, weight / norm) for term, weight in heaviest)
    return profiles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    profiles = profiles_by_day(parser.parse_args().data / "cltls_crisis_es_dev.jsonl.gz")
    storylines = Storylines()
    crisis_of_story: dict[str, str] = {}
    last_day: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for (day_ms, crisis), profile in profiles.items():
        id_ = f"{crisis}-{day_ms}"
        placed = storylines.place(
            event(
                id_,
                id_,
                profile=profile,
                story_id="",
                detected_at_ms=day_ms,
                first_seen_ms=day_ms,
                last_seen_ms=day_ms,
            )
        )
        if placed.story_id != id_:
            counts["right" if crisis_of_story[placed.story_id] == crisis else "false"] += 1
        elif day_ms - last_day.get(crisis, -LINK_MS - 1) <= LINK_MS:
            counts["missed"] += 1
        else:
            counts["first"] += 1
        crisis_of_story.setdefault(placed.story_id, crisis)
        last_day[crisis] = day_ms
    print(f"{len(profiles)} days of a crisis: {dict(counts)}; {len(crisis_of_story)} storylines")


if __name__ == "__main__":
    main()
