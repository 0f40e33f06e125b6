"""Agreement of the chosen headline with a person's choice, for events of the development windows.

    python -m tests.benchmarks.bench_headlines [--windows DIR] [--plain]

``headline_judgments.json`` names, for each event, the recordings, the articles that it had when it fired, and
those of them whose headline describes it best (equal statements count as one choice). The texts are read from
DIR. Term weights are those of the detector in form: idf times the ratio of documents in the last 4 hours to
the mean before, over all headlines of the recordings. ``--plain`` chooses by centrality alone, as before.
Prints one line per event that is not agreed, and the agreement.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.headline import strip_desk_prefix
from aggregator.events.detection.headline_choice import Candidate, choose_headline
from aggregator.offline.jsonl import read_rows
from aggregator.offline.replay import parse_time_ms
from aggregator.time_units import HOUR_MS
from tests.support.development_data import DATA

JUDGMENTS = Path(__file__).with_name("headline_judgments.json")
WINDOW_MS = 4 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Headline:
    """One row of a recording."""

    id: str
    title: str
    at_ms: int
    terms: tuple[str, ...]


@cache
def read_recordings(directory: Path, names: tuple[str, ...]) -> tuple[Headline, ...]:
    """The rows of several recordings, each id once, in order of time."""
    rows: dict[str, Headline] = {}
    for row in read_rows([str(directory / name) for name in names]):
        at_ms, title = parse_time_ms(row.get("published_at")), str(row["title"])
        terms = tuple(dict.fromkeys(tokenizer.tokenize(strip_desk_prefix(title), "en")))
        if at_ms is not None:
            rows.setdefault(str(row["id"]), Headline(str(row["id"]), title, at_ms, terms))
    return tuple(sorted(rows.values(), key=lambda row: row.at_ms))


def candidates_of(headlines: Iterable[Headline], ids: list[str]) -> list[Candidate]:
    """The candidates of one event with their weighted terms, as of its last article."""
    rows = list(headlines)
    wanted = set(ids)
    members = {row.id: row for row in rows if row.id in wanted}
    until_ms = max(row.at_ms for row in members.values())
    past = [row for row in rows if row.at_ms <= until_ms]
    before = Counter(term for row in past if row.at_ms < until_ms - WINDOW_MS for term in row.terms)
    recent = Counter(term for row in past if row.at_ms >= until_ms - WINDOW_MS for term in row.terms)
    windows = max(1.0, (until_ms - past[0].at_ms) / WINDOW_MS)

    def weigh(term: str) -> float:
        idf = math.log(2 + len(past) / (1 + before[term] + recent[term]))
        return idf * max(0.1, (recent[term] + 1) / (before[term] / windows + 1))

    return [
        Candidate(row.title, row.at_ms, {term: weigh(term) for term in row.terms if not term.isdecimal()})
        for row in (members[id_] for id_ in ids)
    ]


def most_central(candidates: Sequence[Candidate]) -> int:
    """The choice by cosine to the centroid alone, the older on a tie."""
    centroid: Counter[str] = Counter()
    for candidate in candidates:
        centroid.update(candidate.terms)

    def cosine(candidate: Candidate) -> float:
        dot = sum(weight * centroid[term] for term, weight in candidate.terms.items())
        return dot / math.sqrt(sum(weight**2 for weight in candidate.terms.values()) or 1.0)

    return max(range(len(candidates)), key=lambda i: (cosine(candidates[i]), -candidates[i].at_ms, -i))


def agreement(directory: Path, *, plain: bool) -> tuple[int, int]:
    """(agreed, judged) over all judged events; prints those that are not agreed."""
    agreed, choose = 0, most_central if plain else choose_headline
    judgments: list[dict[str, Any]] = json.loads(JUDGMENTS.read_text(encoding="utf-8"))
    for judgment in judgments:
        headlines = read_recordings(directory, tuple(judgment["recordings"]))
        candidates = candidates_of(headlines, judgment["items"])
        chosen = judgment["items"][choose(candidates)]
        agreed += chosen in judgment["best"]
        if chosen not in judgment["best"]:
            titles = {row.id: row.title for row in headlines}
            print(f"chosen: {titles[chosen]}\n  best: {titles[judgment['best'][0]]}")
    return agreed, len(judgments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=Path, default=DATA)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    agreed, judged = agreement(options.windows, plain=options.plain)
    print(f"agreed: {agreed} of {judged} ({agreed / judged:.0%})")


if __name__ == "__main__":
    main()
