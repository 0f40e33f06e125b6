"""Cost of a look-up by the number of stored articles, and which candidates turn out to be copies.

    python -m tests.benchmarks.bench_candidates [--articles 13000] [--in-turns]

English articles of the development data (cut to 400 words) go into an empty index. Prints per thousand
articles: CPU of client and store per article; candidates within the radius, candidates that share one sketch
key and several, and candidates examined. At the end: how the originals of the copies were found.

``--in-turns``: each thousand goes into a second index too, whose sketch keys are not bounded
(``index/sketch_buckets.py``), alternately before and after the first one. Prints both, and at the
end the articles whose verdicts differ.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import redis

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.app import build_core
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article
from aggregator.index import Index, sketch_buckets
from aggregator.ingest.decide import ArticleLookup, Decider
from aggregator.ingest.pending import CommitPlan, PendingArticle
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import wall_clock_ms
from tests.benchmarks.bench_http import BATCH_LINES, request_bodies
from tests.support.processes import server_cpu_s

BOUNDED = sketch_buckets.FULL_KEY_ENTRIES, sketch_buckets.KEPT_KEY_ENTRIES
UNBOUNDED = 1 << 40, 1 << 40


class LookupStatistics:
    """Candidates of the look-ups during ``recording``, which patches ``Decider.decide`` to read them."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int, int, int]] = []
        self.found_by: Counter[str] = Counter()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Count the look-ups of this process."""
        decide = Decider.decide

        async def recorded(
            decider: Decider, pending: PendingArticle, lookup: ArticleLookup, *rest: Any
        ) -> CommitPlan:
            plan = await decide(decider, pending, lookup, *rest)
            self._record(lookup, plan)
            return plan

        Decider.decide = recorded  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Decider.decide = decide  # type: ignore[method-assign]

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


class Side:
    """One index on its own server; ``bounded``: whether its sketch keys are."""

    def __init__(
        self, stack: ExitStack, analyses: dict[str, Any], spaces: Sequence[str], *, bounded: bool
    ) -> None:
        self.name = "bounded" if bounded else "unbounded"
        self.limits = BOUNDED if bounded else UNBOUNDED
        self.statistics = LookupStatistics()
        self.verdicts: dict[str, str] = {}
        self._analyses = analyses
        server = stack.enter_context(EmbeddedServer(stack.enter_context(tempfile.TemporaryDirectory())))
        self._sync = stack.enter_context(redis.Redis.from_url(server.url))
        self.store = open_redis_store(server.url)
        index = Index(self.store, spaces, retention_ms=90 * 86_400_000)
        self._ingest = build_core(index, self._prepared, Policy(), clock=wall_clock_ms).ingest

    async def _prepared(self, batch: Sequence[Article]) -> list[Any]:
        return [self._analyses[article.id] for article in batch]

    async def ingest(self, articles: Sequence[Article]) -> str:
        """Store them; what it cost, in words."""
        sketch_buckets.FULL_KEY_ENTRIES, sketch_buckets.KEPT_KEY_ENTRIES = self.limits
        before_s, started = server_cpu_s(self._sync), time.process_time()
        with self.statistics.recording():
            for at in range(0, len(articles), BATCH_LINES):
                batch = articles[at : at + BATCH_LINES]
                for article, answer in zip(batch, await self._ingest.submit_many(batch), strict=True):
                    self.verdicts[article.id] = (
                        answer.outcome.verdict if isinstance(answer, Answer) else "error"
                    )
        client_us = (time.process_time() - started) / len(articles) * 1e6
        server_us = (server_cpu_s(self._sync) - before_s) / len(articles) * 1e6
        near, single, several, examined = np.mean(self.statistics.sizes[-len(articles) :], axis=0)
        return (
            f"{client_us:5.0f} + {server_us:3.0f} us; within the radius {near:.1f}, "
            f"sharing one sketch key {single:.1f}, several {several:.1f}; examined {examined:.1f}"
        )


async def run(rows: Sequence[dict[str, str]], *, in_turns: bool) -> None:
    """Ingest all rows and print one line per thousand and side, and a summary."""
    analyzer = Analyzer(load_models())
    articles = [Article(id=r["id"], title=r.get("title", ""), text=r["text"]) for r in rows]
    analyses = {a.id: analysis for a, analysis in zip(articles, analyzer.analyze_many(articles), strict=True)}
    with ExitStack() as stack:
        sides = [
            Side(stack, analyses, analyzer.spaces, bounded=bounded)
            for bounded in ((True, False) if in_turns else (True,))
        ]
        for start in range(0, len(articles), 1000):
            sides.reverse()
            for side in sides:
                cost = await side.ingest(articles[start : start + 1000])
                print(f"{start:6} stored, {side.name}: {cost}", flush=True)
        for side in sides:
            await side.store.close()
            print(f"copies found by, {side.name}:", dict(side.statistics.found_by))
        first, last = sides[0].verdicts, sides[-1].verdicts
        differing = [id_ for id_ in first if first[id_] != last[id_]]
        if in_turns:
            print(f"{len(differing)} of {len(first)} verdicts differ")
            for id_ in differing:
                print(f"  {id_}: " + ", ".join(f"{side.name} {side.verdicts[id_]}" for side in sides))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=13_000)
    parser.add_argument("--in-turns", action="store_true", help="compare with unbounded sketch keys")
    options = parser.parse_args()
    asyncio.run(
        run(list(itertools.islice(request_bodies("en"), options.articles)), in_turns=options.in_turns)
    )


if __name__ == "__main__":
    main()
