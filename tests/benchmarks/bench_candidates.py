"""Cost of a look-up by the number of stored articles, and which candidates turn out to be copies.

    python -m tests.benchmarks.bench_candidates [--articles 13000]

English articles of the development data (cut to 400 words) go into an empty index. Prints per thousand
articles: CPU of client and store per article; candidates within the radius, candidates that share one sketch
key and several, and candidates examined. At the end: how the originals of the copies were found.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import redis

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.app import build_core
from aggregator.dedup.verdict import Policy
from aggregator.domain import Article
from aggregator.index import Index
from aggregator.ingest.decide import ArticleLookup, Decider
from aggregator.ingest.pending import CommitPlan, PendingArticle
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import wall_clock_ms
from tests.benchmarks.bench_http import BATCH_LINES, request_bodies
from tests.support.processes import server_cpu_s


class LookupStatistics:
    """Candidates of every look-up of this process; patches ``Decider.decide`` to read them."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int, int, int]] = []
        self.found_by: Counter[str] = Counter()
        decide = Decider.decide

        async def recorded(
            decider: Decider, pending: PendingArticle, lookup: ArticleLookup, *rest: Any
        ) -> CommitPlan:
            plan = await decide(decider, pending, lookup, *rest)
            self._record(lookup, plan)
            return plan

        Decider.decide = recorded  # type: ignore[method-assign, assignment]

    def _record(self, lookup: ArticleLookup, plan: CommitPlan) -> None:
        near, (numbers, shared) = lookup.matches.by_bits[0], lookup.matches.by_sketch
        self.sizes.append(
            (len(near), int((shared == 1).sum()), int((shared > 1).sum()), len(lookup.candidate_numbers))
        )
        match = plan.answer.outcome.match
        if match is not None:
            shared_keys = int(shared[numbers == np.uint64(match.number)].sum())
            by_bits = bool((near == np.uint64(match.number)).any())
            self.found_by[
                "bits" if by_bits else "one sketch key" if shared_keys == 1 else "several sketch keys"
            ] += 1


async def run(rows: Sequence[dict[str, str]]) -> None:
    """Ingest all rows and print one line per thousand and a summary."""
    analyzer, statistics = Analyzer(load_models()), LookupStatistics()
    articles = [Article(id=r["id"], title=r.get("title", ""), text=r["text"]) for r in rows]
    analyses = {a.id: analysis for a, analysis in zip(articles, analyzer.analyze_many(articles), strict=True)}

    async def prepared(batch: Sequence[Article]) -> list[Any]:
        return [analyses[article.id] for article in batch]

    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as server:
        store, sync = open_redis_store(server.url), redis.Redis.from_url(server.url)
        index = Index(store, analyzer.spaces, retention_ms=90 * 86_400_000)
        ingest = build_core(index, prepared, Policy(), clock=wall_clock_ms).ingest
        for start in range(0, len(articles), 1000):
            thousand = articles[start : start + 1000]
            before_s, started = server_cpu_s(sync), time.process_time()
            for at in range(0, len(thousand), BATCH_LINES):
                await ingest.submit_many(thousand[at : at + BATCH_LINES])
            client_us = (time.process_time() - started) / len(thousand) * 1e6
            server_us = (server_cpu_s(sync) - before_s) / len(thousand) * 1e6
            near, single, several, examined = np.mean(statistics.sizes[-len(thousand) :], axis=0)
            print(
                f"{start:6} stored: {client_us:5.0f} + {server_us:3.0f} us; within the radius {near:.1f}, "
                f"sharing one sketch key {single:.1f}, several {several:.1f}; examined {examined:.1f}",
                flush=True,
            )
        await store.close()
        sync.close()
    print("copies found by:", dict(statistics.found_by))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=13_000)
    asyncio.run(run(list(itertools.islice(request_bodies("en"), parser.parse_args().articles))))


if __name__ == "__main__":
    main()
