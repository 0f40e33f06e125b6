r"""Verdicts on real news compared with an exhaustive comparison of the texts.

    python -m tests.benchmarks.bench_truth [--data DIR] [--models-dir DIR] [--preset precise] [--json]

Two measurements, each on all of allsides_dev and reuters21578_dev in their order:

* **false duplicates**: number of duplicates with a true containment below 0.1, and from 0.1 to 0.2. True
  means exact: |A and B| / min(|A|, |B|) over the sets of lower-cased ``\w+`` 3-grams of title and text.
  Listed.
* **missed copies**: of the pairs of reuters21578_dev with a resemblance |A and B| / |A or B| (same sets) of
  at least 0.8, the number whose later item is called duplicate, under both policies.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.app import build_core, build_policy
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Answer, Article, Match
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.offline.jsonl import read_rows
from aggregator.offline.replay import parse_time_ms
from aggregator.settings import load
from aggregator.store.memory import MemoryStore
from tests.support.development_data import DATA

FILES = ("allsides_dev", "reuters21578_dev")
MIN_RESEMBLANCE = 0.8
START_MS = 1_600_000_000_000
CHUNK = 512


def main() -> None:
    options = _options()
    policy = build_policy(load({}, {"preset": options.preset}))
    analyzer = Analyzer(load_models(options.models_dir))
    report = {}
    for name in FILES:
        articles = _articles(options.data / f"{name}.jsonl.gz")
        analyses = analyzer.analyze_many(articles)
        copies = _natural_copies(articles) if name == "reuters21578_dev" else []
        for rule in (policy, replace(policy, name="hamming")):
            answers = asyncio.run(_duplicates(articles, analyses, rule, analyzer.spaces))
            found = {"items": len(articles), "duplicates": len(answers), **_false(articles, answers)}
            if copies:
                called = sum(later in answers for _, later in copies)
                found |= {"natural_copies": len(copies), "called": called}
            report[f"{name}, {rule.name}"] = found
    print(json.dumps(report) if options.json else _table(report))


async def _duplicates(
    articles: Sequence[Article],
    analyses: Sequence[Analysis | AggregatorError],
    policy: Policy,
    spaces: Sequence[str],
) -> dict[str, Match]:
    """Matches of the duplicates by id."""
    analysis_of = {a.id: analysis for a, analysis in zip(articles, analyses, strict=True)}

    async def prepared(batch: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [analysis_of[a.id] for a in batch]

    clock = itertools.count(START_MS)
    index = Index(MemoryStore(), spaces)
    ingest = build_core(index, prepared, policy, clock=lambda: next(clock)).ingest
    answers = await ingest.submit_many(articles)
    return {a.id: a.outcome.match for a in answers if isinstance(a, Answer) and a.outcome.match}


def _false(articles: Sequence[Article], answers: dict[str, Match]) -> dict[str, object]:
    """Duplicates with a true containment below 0.2, with ids."""
    by_id = {a.id: a for a in articles}
    listed: dict[str, list[object]] = {"below 0.1": [], "0.1 to 0.2": []}
    for id_, match in answers.items():
        a, b = _grams(by_id[id_]), _grams(by_id[match.id])
        true = len(a & b) / min(len(a), len(b)) if a and b else 1.0
        if true < 0.2:
            listed["below 0.1" if true < 0.1 else "0.1 to 0.2"].append(
                (id_, match.id, match.rule, round(true, 3))
            )
    return {f"true containment {name}": found for name, found in listed.items()}


def _natural_copies(articles: Sequence[Article]) -> list[tuple[str, str]]:
    """(earlier id, later id) of every pair with a resemblance of at least ``MIN_RESEMBLANCE``."""
    columns: dict[tuple[str, ...], int] = {}
    sets = [[columns.setdefault(g, len(columns)) for g in _grams(a)] for a in articles]
    starts = np.cumsum([0, *map(len, sets)])
    data = np.ones(starts[-1], np.float32)
    matrix = sparse.csr_matrix((data, list(itertools.chain.from_iterable(sets)), starts))
    sizes = np.diff(starts)
    pairs = []
    for start in range(0, len(sets), CHUNK):
        shared = (matrix[start : start + CHUNK] @ matrix.T).tocoo()
        later = shared.row + start
        is_copy = shared.data / (sizes[later] + sizes[shared.col] - shared.data) >= MIN_RESEMBLANCE
        for i, j in zip(later[is_copy], shared.col[is_copy], strict=True):
            if j < i:
                pairs.append((articles[j].id, articles[i].id))
    return pairs


def _grams(article: Article) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", f"{article.title}\n{article.text}".lower())
    return set(zip(words, words[1:], words[2:], strict=False))


def _table(report: dict[str, dict[str, object]]) -> str:
    lines = []
    for name, found in report.items():
        lines.append(name)
        for figure, value in found.items():
            if isinstance(value, list):
                lines.append(f"  {figure}: {len(value)}")
                lines += [f"      {row}" for row in value] if len(value) <= 40 else ["      (see --json)"]
            else:
                lines.append(f"  {figure}: {value}")
    return "\n".join(lines)


def _articles(file: Path) -> list[Article]:
    return [
        Article(
            id=row["id"],
            title=row.get("title") or "",
            text=row.get("text") or "",
            source=row.get("source") or "",
            published_at_ms=parse_time_ms(row.get("published_at")),
            lang="en",
        )
        for row in read_rows([str(file)])
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=DATA, type=Path)
    parser.add_argument("--models-dir", type=Path, help="feature models (default: the shipped ones)")
    parser.add_argument("--preset", default="balanced", help="balanced (default) or precise")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    return parser.parse_args()


if __name__ == "__main__":
    main()
