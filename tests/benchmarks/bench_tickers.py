"""Newswire items about different companies that were called duplicates of each other.

    python -m tests.benchmarks.bench_tickers [--data DIR] [--preset precise] [--plain] [--json]

Reuters-21578 marks the companies of an item by ticker, ``<IBM>``. Two items with tickers but none in common
are about different companies, so a verdict "duplicate" between them is very likely wrong: template news
(dividend notices, quarterly results) that only the template makes similar. Ingests reuters21578_dev in its
order under the default policy and lists every such item with its match. A match without any ticker has none
in common either, but is mostly the same text sent twice, the second time with its ticker; these are counted
separately.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.app import build_core, build_policy
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article, Match
from aggregator.index import Index
from aggregator.offline.evaluation.tickers import tickers
from aggregator.offline.jsonl import read_rows
from aggregator.settings import load
from aggregator.store.memory import MemoryStore
from tests.support.development_data import DATA
from tests.support.factories import in_process

START_MS = 1_600_000_000_000


def main() -> None:
    options = _options()
    articles = [
        Article(id=row["id"], title=row.get("title") or "", text=row.get("text") or "", lang="en")
        for row in read_rows([str(options.data / "reuters21578_dev.jsonl.gz")])
    ]
    policy = build_policy(load({}, {"preset": options.preset}))
    if options.plain:
        policy = replace(policy, min_shared_shingles=0.0, min_similarity=0.0)
    matches = asyncio.run(duplicates(articles, policy))
    by_id = {article.id: article for article in articles}
    false = [(by_id[id_], match) for id_, match in matches if other_companies(by_id[id_], by_id[match.id])]
    if options.json:
        print(json.dumps([_line(article, match, by_id[match.id]) for article, match in false]))
        return
    both = sum(bool(tickers(by_id[match.id])) for _, match in false)
    print(
        f"{len(articles)} items, {len(matches)} called duplicate, "
        f"{both} of them about other companies than the match; "
        f"{len(false)} including matches that name no company"
    )
    for article, match in false:
        print("  ".join(str(value) for value in _line(article, match, by_id[match.id]).values()))


async def duplicates(articles: Sequence[Article], policy: Policy) -> list[tuple[str, Match]]:
    """Ids of the duplicates, with their matches."""
    analyzer = Analyzer(load_models())

    clock = itertools.count(START_MS)
    index = Index(MemoryStore(), analyzer.spaces)
    ingest = build_core(index, in_process(analyzer), policy, clock=lambda: next(clock)).ingest
    answers = await ingest.submit_many(articles)
    return [(a.id, a.outcome.match) for a in answers if isinstance(a, Answer) and a.outcome.match]


def other_companies(a: Article, b: Article) -> bool:
    """Whether ``a`` names companies and ``b`` none of them (``b`` may name none at all)."""
    return bool(tickers(a)) and not tickers(a) & tickers(b)


def _line(article: Article, match: Match, other: Article) -> dict[str, object]:
    return {
        "id": article.id,
        "match": other.id,
        "rule": match.rule,
        "overlap": match.overlap,
        "bits": match.distance,
        "tickers": " ".join(sorted(tickers(article))) + " | " + " ".join(sorted(tickers(other))),
        "titles": f"{article.title} | {other.title}",
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=DATA, type=Path)
    parser.add_argument("--preset", default="balanced", help="balanced (default) or precise")
    parser.add_argument("--plain", action="store_true", help="decide by containment alone, for comparison")
    parser.add_argument("--json", action="store_true", help="one JSON list instead of lines")
    return parser.parse_args()


if __name__ == "__main__":
    main()
