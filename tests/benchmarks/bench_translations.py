"""How well two texts of one event in two languages are recognized by their names.

    python -m tests.benchmarks.bench_translations [--data DIR]

Pairs of German and English news with a human judgment (SemEval 2022, task 8): one story has ``overall``
at most 2 of 4. Each text is cut to 1,500 characters; its 20 heaviest terms are the profile of an event.
Random pairs are all other combinations of the same texts. Prints for each threshold of the cosine the share
that ``translations.py`` takes for one event; the figures of one half of the pairs choose a threshold for the
other half.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.domain import Article
from aggregator.events.translations import MIN_COMMON_NAMES, latin_agreement
from aggregator.offline.jsonl import read_rows
from tests.support.development_data import DATA

MAX_CHARS = 1500
PROFILE_TERMS = 20
SAME_STORY = 2.0
THRESHOLDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4)

Profile = dict[str, float]


def read_pairs(path: Path) -> list[tuple[Profile, Profile, bool]]:
    """(German profile, English profile, whether it is one story) of each pair of both languages."""
    analyzer = Analyzer(load_models())

    def profile_of(row: dict[str, Any], side: str) -> Profile:
        text = str(row[f"text{side}"])[:MAX_CHARS]
        article = Article("a", title=text[:120], text=text, lang=row[f"lang{side}"])
        return dict(analyzer.analyze(article).terms[:PROFILE_TERMS])

    return [
        (profile_of(row, "1"), profile_of(row, "2"), float(row["overall"]) <= SAME_STORY)
        for row in read_rows([str(path)])
        if {row["lang1"], row["lang2"]} == {"de", "en"}
    ]


def is_taken(a: Profile, b: Profile, threshold: float) -> bool:
    """Whether the pair reaches this threshold with enough names."""
    cosine, common = latin_agreement(a, b)
    return common >= MIN_COMMON_NAMES and cosine >= threshold


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    pairs = read_pairs(parser.parse_args().data / "semeval2022_t8_dev.jsonl.gz")
    for half in (pairs, pairs[::2], pairs[1::2]):
        same = [(a, b) for a, b, is_same in half if is_same]
        other = [(a, b) for a, b, is_same in half if not is_same]
        random = [(a, b) for i, (a, _, _) in enumerate(half) for j, (_, b, _) in enumerate(half) if i != j]
        print(f"{len(same)} of one story, {len(other)} judged different, {len(random)} random")
        for threshold in THRESHOLDS:
            shares = [
                f"{sum(is_taken(a, b, threshold) for a, b in group)} of {len(group)}"
                for group in (same, other, random)
            ]
            print(f"  {threshold:<6g}" + "".join(f"{share:>18}" for share in shares))


if __name__ == "__main__":
    main()
