"""Constants of the copy rule by cross-validation: each source is left out once.

    python -m tests.benchmarks.bench_copy_rule FILE... [--articles N] [--costs COST ...]

FILEs hold articles of different sources (allsides_dev, yahoo_finance_dev, xinwenlianbo_dev, reuters21578_dev,
ru_telegram_dev); a file with labels (spotsigs_dev) shows what is found. Candidates are pairs that share a
sketch key (8 stored, 16 looked up). For every setting of a grid around the defaults of ``policy.Policy``:

* wrong    share of the articles called duplicates whose best pair is wrong by the labels; without labels by a
           person (``JUDGMENTS``), or by the counter of ``evaluate duplicates`` if nobody judged it,
* counter  the same by labels and counter alone,
* found    in a labelled file the share of the articles with an earlier one of the same label that are called;
           in the others that of articles with an earlier one of equal wording (resemblance of 0.8).

For each file the setting is chosen whose mean of found - COST * wrong over the **other** files is highest,
since a false duplicate is a lost article and a missed one a repeated headline; the figures of the left-out
file under that setting are printed, for each COST.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from aggregator.analysis import shingles
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.dedup.evidence import Arrival, Evidence, hours_between, is_same_outlet
from aggregator.dedup.pair_comparison import headline_similarity, template_difference
from aggregator.dedup.policy import Policy
from aggregator.dedup.similarity import cosine
from aggregator.domain import Analysis, Article
from aggregator.offline.evaluation.duplicate_counter import judge_pair
from aggregator.offline.evaluation.judgments import read_judgments
from aggregator.offline.replay import parse_time_ms

GRID: dict[str, tuple[float, ...]] = {
    "min_common_opening": (0.0, 0.25, 0.35, 0.5),
    "min_headline_similarity": (0.7, 0.8, 0.9),
    "partial_containment": (0.3, 0.35, 0.4, 0.45),
    "same_outlet_containment": (0.6, 0.7, 0.8),
    "same_outlet_hours": (12.0, 16.0, 20.0, 36.0),
    "later_containment": (0.8, 0.85, 0.9, 0.95),
    "later_other_headline_containment": (0.9, 0.93, 0.96, 0.98),
}
# Duplicates judged by a person: a sample of today's, and those of the former rule that it no longer calls.
JUDGMENTS = ("duplicate_judgments.json", "former_duplicate_judgments.json")
MIN_CONTAINMENT, SAME_WORDING = 0.2, 0.8
MAX_CANDIDATES, MAX_PER_KEY = 64, 200


class Score(NamedTuple):
    """Articles called, shares of them that are wrong, and the share of the expected ones that is found."""

    called: int
    wrong: float
    counter: float
    found: float

    def __str__(self) -> str:
        return f"{self.called:6}{self.wrong:8.3f}{self.counter:8.3f}{self.found:8.3f}"


@dataclass(slots=True)
class Pair:
    """A later article and an earlier candidate, with all that the rule needs."""

    later: int
    earlier: int
    evidence: Evidence
    headlines: float
    wrong: tuple[bool, bool] | None = None  # by a person where one judged it; by labels and counter alone


@dataclass(slots=True)
class Source:
    """The candidates of one file; ``expected``: articles that should be called."""

    name: str
    articles: list[Article] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    expected: set[int] = field(default_factory=set)
    judged: dict[tuple[str, str], bool] = field(default_factory=dict)  # (duplicate, match) -> wrong

    def score(self, policy: Policy) -> Score:
        """The figures of this file under a policy."""
        best: dict[int, Pair] = {}
        for pair in self.pairs:
            found = best.get(pair.later)
            if found is not None and found.evidence.overlap.containment >= pair.evidence.overlap.containment:
                continue
            if policy.copy_rule.is_copy(pair.evidence, lambda p=pair: p.headlines):  # type: ignore[misc]
                best[pair.later] = pair
        kinds = [self._is_wrong(pair) for pair in best.values()]
        count = max(1, len(best))
        return Score(
            called=len(best),
            wrong=sum(wrong for wrong, _ in kinds) / count,
            counter=sum(counted for _, counted in kinds) / count,
            found=len(self.expected & best.keys()) / len(self.expected) if self.expected else 1.0,
        )

    def _is_wrong(self, pair: Pair) -> tuple[bool, bool]:
        if pair.wrong is None:
            a, b = self.articles[pair.earlier], self.articles[pair.later]
            labels = self.labels[pair.earlier], self.labels[pair.later]
            if labels[0]:
                pair.wrong = (labels[0] != labels[1],) * 2
            else:
                counted = judge_pair(a, b, a.lang or "en").wrong
                pair.wrong = self.judged.get((b.id, a.id), counted), counted
        return pair.wrong


def read_source(path: Path, analyzer: Analyzer, limit: int) -> Source:
    """Analyze the articles of a file in order, and compare the candidates."""
    source, analyses = Source(path.name.split(".")[0]), list[Analysis]()
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in itertools.islice(file, limit)]
    for row in rows:
        article = _article(row)
        analysis = analyzer.analyze_many([article])[0]
        if isinstance(analysis, Analysis):
            article_in_language = Article(
                article.id, article.title, article.text, "", "", article.source, article.published_at_ms,
                analysis.lang,
            )  # fmt: skip
            source.articles.append(article_in_language)
            source.labels.append(row.get("cluster"))
            analyses.append(analysis)
    _compare(source, analyses)
    return source


def _article(row: dict[str, Any]) -> Article:
    return Article(
        id=row["id"],
        title=row.get("title") or "",
        text=row.get("text") or "",
        source=row.get("source") or "",
        published_at_ms=parse_time_ms(row.get("published_at")),
    )


def _origin(article: Article) -> Arrival:
    return Arrival(article.source, article.published_at_ms, 0)


def _compare(source: Source, analyses: list[Analysis]) -> None:
    by_key: dict[int, list[int]] = defaultdict(list)
    for later, analysis in enumerate(analyses):
        shared: dict[int, int] = defaultdict(int)
        for key in shingles.query_keys(analysis.sketch):
            for earlier in by_key[key][-MAX_PER_KEY:]:
                shared[earlier] += 1
        candidates = sorted(shared, key=lambda n: (-shared[n], -n))[:MAX_CANDIDATES]
        overlaps = shingles.estimate_overlaps(analysis.sketch, [analyses[n].sketch for n in candidates])
        for earlier, overlap in zip(candidates, overlaps, strict=True):
            if overlap.resemblance >= SAME_WORDING or (
                source.labels[later] and source.labels[later] == source.labels[earlier]
            ):
                source.expected.add(later)
            if overlap.containment < MIN_CONTAINMENT:
                continue
            if template_difference(overlap, analysis, analyses[earlier]):
                continue
            origins = _origin(source.articles[earlier]), _origin(source.articles[later])
            evidence = Evidence(
                overlap,
                cosine(analysis.terms, analyses[earlier].terms),
                0,
                is_same_outlet(*origins),
                hours_between(*origins),
            )
            headlines = headline_similarity(analysis, analyses[earlier])
            source.pairs.append(Pair(later, earlier, evidence, headlines))
        for key in shingles.sketch_keys(analysis.sketch):
            by_key[key].append(later)


def main() -> None:
    """Print one line per left-out file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--articles", type=int, default=6_000, help="articles read of each file")
    parser.add_argument("--costs", type=float, nargs="+", default=[1, 2, 4, 10], help="of a wrong one")
    args = parser.parse_args()
    analyzer = Analyzer(load_models())
    sources = [read_source(path, analyzer, args.articles) for path in args.files]
    files = [str(Path(__file__).with_name(name)) for name in JUDGMENTS]
    judged = {(j.a, j.b): j.judgment == "wrong" for file in files for j in read_judgments(file)}
    for source in sources:
        source.judged = judged
    settings = [
        dict(zip(GRID, values, strict=True))
        for values in itertools.product(*GRID.values())
        if sum(value != getattr(Policy(), name) for name, value in zip(GRID, values, strict=True)) <= 2
    ]
    scores = {
        source.name: [source.score(Policy(**setting)) for setting in settings]  # type: ignore[arg-type]
        for source in sources
    }
    for cost in args.costs:
        print(f"\na wrong one costs as much as {cost:g} missed ones")
        _print_left_out(settings, scores, cost)


def _print_left_out(settings: list[dict[str, float]], scores: dict[str, list[Score]], cost: float) -> None:
    default = settings.index({name: getattr(Policy(), name) for name in GRID})
    heading = f"{'called':>6}{'wrong':>8}{'counter':>8}{'found':>8}"
    print(f"{'left out':18}{heading}   the shipped constants {heading}   chosen")
    for name, own in scores.items():
        others = [scores[other] for other in scores if other != name]
        chosen = max(
            range(len(settings)),
            key=lambda n: (mean(s[n].found - cost * s[n].wrong for s in others), n == default),
        )
        changes = {k: v for k, v in settings[chosen].items() if v != getattr(Policy(), k)}
        print(f"{name:18}{own[chosen]}{'':25} {own[default]}   {changes or 'the shipped constants'}")


if __name__ == "__main__":
    main()
