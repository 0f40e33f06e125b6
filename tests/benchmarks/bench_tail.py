"""What does the process of the scheduled work spend on an article? CPU alone: nothing else goes on meanwhile.

    python tests/benchmarks/bench_tail.py [--articles 8000] [--rate 800] [--tick 2]

Articles of 400 words are checked and inserted into an embedded store under a clock of their own, at ``--rate`` a second;
then the detector reads them as the scheduler does (``cli/scheduled.py``), every ``--tick`` seconds of that clock those that
had come by then. Prints CPU per article of reader and store, in all and for each tick, and what is saved.
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
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Article, StreamItem
from aggregator.errors import AggregatorError
from aggregator.events.consumer import STATE_KEY, DetectorRunner
from aggregator.events.detection import BurstRule
from aggregator.events.repository import EventRepository
from aggregator.index import Index
from aggregator.runtime.event_loop import run_loop, tune_interpreter
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from tests.benchmarks.bench_http import bodies
from tests.support.processes import server_cpu_s

START_MS = 1_790_000_000_000
TOGETHER = 50


class UpToNow:
    """The stream of an index, of which no more has come than ``came``."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.came = self.read = 0

    async def read_stream(
        self, positions: Mapping[bytes, bytes], count: int
    ) -> tuple[list[StreamItem], dict[bytes, bytes]]:
        """See ``Index.stream``."""
        left = min(count, self.came - self.read)
        if not left:
            return [], dict(positions)
        items, moved = await self._index.read_stream(positions, left)
        self.read += len(items)
        return items, moved


def stored(url: str, count: int, rate: float) -> Sequence[str]:
    """Check and insert articles; the spaces they are in. In a process of its own: the scheduler's has no models."""
    return run_loop(inserted(url, count, rate))


async def inserted(url: str, count: int, rate: float) -> Sequence[str]:
    """See ``stored``."""
    analyser, store = Analyzer(load_models()), open_redis_store(url)
    index = Index(store, analyser.spaces)
    given = [
        Article(id=row["id"], title=row.get("title", ""), text=row["text"])
        for row in itertools.islice(bodies("en"), count)
    ]
    ready = {a.id: made for a, made in zip(given, analyser.analyze_many(given), strict=True)}
    now_ms = START_MS

    async def prepared(some: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [ready[article.id] for article in some]

    ingest = build_core(index, prepared, Policy(), clock=lambda: now_ms).ingest
    for start in range(0, count, TOGETHER):
        now_ms = START_MS + int(start * 1000 / rate)
        await ingest.submit_many(given[start : start + TOGETHER])
    await store.close()
    return analyser.spaces


async def tailed(index: Index, url: str, count: int, rate: float, tick_s: float) -> dict[str, object]:
    """Let the detector read them; the figures."""
    sync, source = redis.Redis.from_url(url), UpToNow(index)
    events = DetectorRunner(EventRepository(index.store), BurstRule(), yield_control=TimeSlicer().yield_control)
    tokenizer.tokenize("", "en")
    tune_interpreter()
    server_s, started, ticks = server_cpu_s(sync), time.process_time(), []
    while source.read < count:
        begun, before = time.process_time(), source.read
        now_ms = START_MS + int((len(ticks) + 1) * tick_s * 1000)
        source.came = min(count, int((len(ticks) + 1) * tick_s * rate))
        await events.poll(source, now_ms)
        while events.has_backlog:
            await events.poll(source, now_ms)
        ticks.append(round((time.process_time() - begun) * 1e6 / max(1, source.read - before)))
    await events.save_checkpoint(now_ms)
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
    """Print one line."""
    spawning = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as server:
        with ProcessPoolExecutor(1, mp_context=spawning) as other:
            spaces = await asyncio.wrap_future(other.submit(stored, server.url, count, rate))
        store = open_redis_store(server.url)
        print(json.dumps(await tailed(Index(store, spaces), server.url, count, rate, tick_s)))
        await store.close()


def main() -> None:
    """Measure and print."""
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
