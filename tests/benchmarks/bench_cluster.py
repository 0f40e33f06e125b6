"""A cluster of six nodes against one node (``scripts/bench cluster [--articles 6000]``), on loopback.

Generated articles whose analysis is ready go through the ingest of one process, from eight callers in lists
of ``LIST``, into one space of ten segments, so that the writable segment rolls over nine times during the
load. First into one server, then into three primaries with a replica each; both print a JSON line:

    insert/s, check/s     articles checked and inserted, and checked only, over all ten segments
    CPU ms                per inserted article: client, all primaries, and the node of the writable segment,
                          whose inverse is the most that one language can write on such a processor (ceiling)
    roll-over p99         ms of the lists that ran while a segment was sealed, of all others, and the longest
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import redis

from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Answer, Article
from aggregator.errors import AggregatorError
from aggregator.index import Index, keys
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import DAY_MS, wall_clock_ms
from tests.benchmarks.indexing.commit import near_copy, prepare_articles, unrelated_analyses
from tests.benchmarks.indexing.layouts import SPACE
from tests.support.cluster import Cluster, running_cluster
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import server_cpu_s
from tests.support.wiring import build_core

CALLERS, LIST, SEGMENTS = 8, 50, 10
COPY_ONE_IN = 10
NEAR_S = 0.5
Figures = dict[str, Any]


class Load:
    """Ingest in this process."""

    def __init__(self, url: str, analyses: dict[str, Analysis], segment_articles: int) -> None:
        self.store = open_redis_store(url, socket_timeout_s=HANG_LIMIT_S)
        self._analyses = analyses
        self.index = Index(
            self.store, [SPACE], retention_ms=90 * DAY_MS, segment_max_articles=segment_articles
        )
        self._service = build_core(self.index, self._prepared, Policy(), clock=wall_clock_ms).ingest
        self.taken: list[tuple[float, float]] = []  # start and end of each list, s
        self.rolled_s: list[float] = []

    async def _prepared(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [self._analyses[article.id] for article in articles]

    async def insert(self, articles: Sequence[Article], *, check_only: bool = False) -> float:
        """Insert lists, or only check them; returns articles per second."""
        lists = iter([articles[i : i + LIST] for i in range(0, len(articles), LIST)])
        started = time.perf_counter()
        watcher = asyncio.create_task(self._watch())
        await asyncio.gather(*(self._caller(lists, check_only) for _ in range(CALLERS)))
        watcher.cancel()
        return len(articles) / (time.perf_counter() - started)

    async def _caller(self, lists: Any, check_only: bool) -> None:
        for part in lists:
            started = time.monotonic()
            answers = await self._service.submit_many(part, dry_run=check_only)
            assert all(isinstance(answer, Answer) for answer in answers)
            if not check_only:
                self.taken.append((started, time.monotonic()))

    async def _watch(self) -> None:
        last = (await self.index.segments.stack(SPACE)).last
        while True:
            await asyncio.sleep(0.02)
            now = (await self.index.segments.stack(SPACE)).last
            if now != last:
                self.rolled_s.append(time.monotonic())
                last = now

    def roll_overs(self) -> Figures:
        """Ms of the lists near a roll-over and of the others."""
        near = [any(a - NEAR_S < r < b + NEAR_S for r in self.rolled_s) for a, b in self.taken]
        ms = np.array([(b - a) * 1000 for a, b in self.taken])
        flags = np.array(near)
        return {
            "roll-overs": len(self.rolled_s),
            "roll-over p99": round(float(np.percentile(ms[flags], 99))) if flags.any() else None,
            "others p99": round(float(np.percentile(ms[~flags], 99))) if not flags.all() else None,
            "longest": round(float(ms.max())),
        }


def articles(prefix: str, count: int, seed: int, analyses: dict[str, Analysis]) -> list[Article]:
    """Unrelated articles and, one in ten, a near-copy of an earlier one of these."""
    rng, made = np.random.default_rng(seed), list[Analysis]()
    for number, fresh in enumerate(unrelated_analyses(count, seed)):
        original = made[int(rng.integers(number))] if number % COPY_ONE_IN == COPY_ONE_IN - 1 else None
        made.append(near_copy(original, rng) if original is not None else fresh)
    return prepare_articles(prefix, iter(made), analyses)


async def load(url: str, ports: Callable[[], dict[str, redis.Redis]], count: int) -> tuple[Load, Figures]:
    """Insert ``count`` articles into ten segments, then check others; ``ports``: the primaries."""
    analyses: dict[str, Analysis] = {}
    prepared, others = articles("a", count, 21, analyses), articles("q", count // 3, 22, analyses)
    run = Load(url, analyses, count // SEGMENTS)
    before = {name: server_cpu_s(client) for name, client in ports().items()}
    cpu_s = time.process_time()
    by_writer: dict[str, float] = {}
    rate = await run.insert(prepared)
    client_ms = (time.process_time() - cpu_s) * 1000 / count
    for name, client in ports().items():
        by_writer[name] = (server_cpu_s(client) - before[name]) * 1000 / count
    check_rate = await run.insert(others, check_only=True)
    return run, {
        "insert/s": round(rate),
        "check/s": round(check_rate),
        "client CPU ms": round(client_ms, 3),
        "primaries' CPU ms": {name: round(ms, 3) for name, ms in by_writer.items()},
        **run.roll_overs(),
    }


async def writable_cost(run: Load, client: redis.Redis, prefix: str, count: int) -> Figures:
    """CPU of the node of the writable segment per article, while no segment is sealed."""
    prepared = articles(prefix, count, 23, run._analyses)
    run.index.segments.max_articles = 10**9
    before = server_cpu_s(client)
    await run.insert(prepared)
    ms = (server_cpu_s(client) - before) * 1000 / count
    return {"writable node CPU ms": round(ms, 3), "ceiling articles/s": round(1000 / ms)}


async def on_cluster(cluster: Cluster, count: int) -> None:
    """All phases on a cluster."""

    def ports() -> dict[str, redis.Redis]:
        return {f"primary {i}": redis.Redis(port=port) for i, port in enumerate(sorted(cluster.primaries()))}

    run, figures = await load(cluster.url, ports, count)
    tag = (await run.index.segments.stack(SPACE)).writable_tag
    writable = cluster.primary_of(tag + keys.STREAM)
    figures |= await writable_cost(run, redis.Redis(port=writable), "w", count // 3)
    print(json.dumps({"nodes": 6, **figures}), flush=True)
    await run.store.close()


async def on_one(server: EmbeddedServer, count: int) -> None:
    """The same load on one node."""
    client = redis.Redis.from_url(server.url)
    run, figures = await load(server.url, lambda: {"one": client}, count)
    figures |= await writable_cost(run, client, "w", count // 3)
    print(json.dumps({"nodes": 1, **figures}), flush=True)
    await run.store.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=6000, help="of the load of each")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        one = stack.enter_context(EmbeddedServer(Path(directory) / "one"))
        asyncio.run(on_one(one, args.articles))
        cluster = stack.enter_context(running_cluster(Path(directory)))
        asyncio.run(on_cluster(cluster, args.articles))


if __name__ == "__main__":
    main()
