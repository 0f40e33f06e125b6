"""What does a look-up cost the more is stored, and which of its candidates are copies? ``python tests/benchmarks/bench_candidates.py``

English articles of the development data (cut to 400 words) go into an empty index; of each thousand: CPU of client and
store per article, how many are within the radius, how many share one band and how many more than one, and how many are
looked at. At the end: by what the article that each copy repeats was found.
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
from tests.benchmarks.bench_http import BATCH_LINES, bodies
from tests.support.processes import server_cpu_s


class Watched:
    """Counts what the look-ups of a process found, as each article is decided."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int, int, int]] = []
        self.found_by: Counter[str] = Counter()
        decide = Decider.decide

        async def watched(
            decider: Decider, pending: PendingArticle, lookup: ArticleLookup, *rest: Any
        ) -> CommitPlan:
            plan = await decide(decider, pending, lookup, *rest)
            self._record(lookup, plan)
            return plan

        Decider.decide = watched  # type: ignore[method-assign, assignment]

    def _record(self, lookup: ArticleLookup, plan: CommitPlan) -> None:
        near, (numbers, shared) = lookup.matches.by_bits[0], lookup.matches.by_sketch
        self.sizes.append(
            (len(near), int((shared == 1).sum()), int((shared > 1).sum()), len(lookup.candidate_numbers))
        )
        match = plan.answer.outcome.match
        if match is not None:
            bands = int(shared[numbers == np.uint64(match.number)].sum())
            by_bits = bool((near == np.uint64(match.number)).any())
            self.found_by["bits" if by_bits else "one band" if bands == 1 else "several bands"] += 1


async def run(rows: Sequence[dict[str, str]]) -> None:
    """A line of each thousand, and one of all."""
    analyser, watched = Analyzer(load_models()), Watched()
    given = [Article(id=r["id"], title=r.get("title", ""), text=r["text"]) for r in rows]
    ready = {a.id: made for a, made in zip(given, analyser.analyze_many(given), strict=True)}

    async def prepared(some: Sequence[Article]) -> list[Any]:
        return [ready[article.id] for article in some]

    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as server:
        store, sync = open_redis_store(server.url), redis.Redis.from_url(server.url)
        index = Index(store, analyser.spaces, retention_ms=90 * 86_400_000)
        ingest = build_core(index, prepared, Policy(), clock=wall_clock_ms).ingest
        for start in range(0, len(given), 1000):
            some = given[start : start + 1000]
            before_s, started = server_cpu_s(sync), time.process_time()
            for at in range(0, len(some), BATCH_LINES):
                await ingest.submit_many(some[at : at + BATCH_LINES])
            client_us = (time.process_time() - started) / len(some) * 1e6
            server_us = (server_cpu_s(sync) - before_s) / len(some) * 1e6
            near, single, several, looked_at = np.mean(watched.sizes[-len(some) :], axis=0)
            print(
                f"{start:6} stored: {client_us:5.0f} + {server_us:3.0f} us; within the radius {near:.1f}, sharing "
                f"one band {single:.1f}, more {several:.1f}; looked at {looked_at:.1f}",
                flush=True,
            )
        await store.close()
        sync.close()
    print("copies found by:", dict(watched.found_by))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=13_000)
    asyncio.run(run(list(itertools.islice(bodies("en"), parser.parse_args().articles))))


if __name__ == "__main__":
    main()
