"""CPU of the background process per article, without any concurrent work.

    python -m tests.benchmarks.bench_tail [--articles 8000] [--rate 800] [--tick 2]

Articles of 400 words are checked and inserted into an embedded store under a simulated clock, at ``--rate``
per second. Then the detector reads them as the background process does (``runtime/background_main.py``):
every ``--tick`` seconds of that clock the articles that had arrived by then. Prints CPU per article of reader
and store, in total and per tick, and the size of the saved state.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

import redis

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.text import tokenizer
from aggregator.app import build_core
from aggregator.concurrency.priority_gate import TimeSlicer
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Article, StreamItem
from aggregator.errors import AggregatorError
from aggregator.events.consumer import STATE_KEY, DetectorRunner
from aggregator.events.detection import BurstRule
from aggregator.events.repository import EventRepository
from aggregator.index import Index
from aggregator.runtime.event_loop import run_loop, tune_interpreter
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from tests.benchmarks.bench_http import request_bodies
from tests.support.processes import server_cpu_s

START_MS = 1_790_000_000_000
BATCH_ARTICLES = 50


class ArrivedStream:
    """Article stream of an index, limited to the first ``arrived`` articles."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.arrived = self.count_read = 0

    async def read(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        """See ``ArticleStream.read``."""
        left = min(count, self.arrived - self.count_read)
        if not left:
            return [], dict(positions)
        items, moved = await self._index.stream.read(positions, left)
        self.count_read += len(items)
        return items, moved


def insert_articles(url: str, count: int, rate: float) -> list[str]:
    """Check and insert articles; their spaces.

    Runs in a separate process, since the background process does not load the models.
    """
    return run_loop(_insert_articles(url, count, rate))


async def _insert_articles(url: str, count: int, rate: float) -> list[str]:
    analyzer, store = Analyzer(load_models()), open_redis_store(url)
    index = Index(store, analyzer.spaces)
    articles = [
        Article(id=row["id"], title=row.get("title", ""), text=row["text"])
        for row in itertools.islice(request_bodies("en"), count)
    ]
    analyses = {a.id: analysis for a, analysis in zip(articles, analyzer.analyze_many(articles), strict=True)}
    now_ms = START_MS

    async def prepared(batch: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [analyses[article.id] for article in batch]

    ingest = build_core(index, prepared, Policy(), clock=lambda: now_ms).ingest
    for start in range(0, count, BATCH_ARTICLES):
        now_ms = START_MS + int(start * 1000 / rate)
        await ingest.submit_many(articles[start : start + BATCH_ARTICLES])
    await store.close()
    return list(analyzer.spaces)


async def read_stream(index: Index, url: str, count: int, rate: float, tick_s: float) -> dict[str, object]:
    """Let the detector read the stream; returns the figures."""
    sync, source = redis.Redis.from_url(url), ArrivedStream(index)
    detector = DetectorRunner(
        EventRepository(index.store), BurstRule(), yield_control=TimeSlicer().yield_control
    )
    tokenizer.tokenize("", "en")
    tune_interpreter()
    server_s, started = server_cpu_s(sync), time.process_time()
    ticks: list[int] = []
    while source.count_read < count:
        tick_started, before = time.process_time(), source.count_read
        now_ms = START_MS + int((len(ticks) + 1) * tick_s * 1000)
        source.arrived = min(count, int((len(ticks) + 1) * tick_s * rate))
        await detector.poll(source, now_ms)
        while detector.has_backlog:
            await detector.poll(source, now_ms)
        ticks.append(round((time.process_time() - tick_started) * 1e6 / max(1, source.count_read - before)))
    await detector.save_checkpoint(now_ms)
    used_s, server_s = time.process_time() - started, server_cpu_s(sync) - server_s
    state = bytes(sync.get(STATE_KEY) or b"")  # type: ignore[arg-type]
    sync.close()
    return {
        "articles": count,
        "cpu_us_per_article": round(used_s * 1e6 / count),
        "of_each_tick": ticks,
        "store_us_per_article": round(server_s * 1e6 / count),
        "saved_bytes": len(state),
    }


async def run(count: int, rate: float, tick_s: float) -> None:
    """Measure and print one JSON line."""
    spawn_context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as server:
        with ProcessPoolExecutor(1, mp_context=spawn_context) as executor:
            spaces = await asyncio.wrap_future(executor.submit(insert_articles, server.url, count, rate))
        store = open_redis_store(server.url)
        print(json.dumps(await read_stream(Index(store, spaces), server.url, count, rate, tick_s)))
        await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=8000)
    parser.add_argument("--rate", type=float, default=800)
    parser.add_argument("--tick", type=float, default=2.0)
    args = parser.parse_args()
    run_loop(run(args.articles, args.rate, args.tick))


if __name__ == "__main__":
    main()
