"""Latency of look-up and commit with sealed segments and with compaction, in ms per article.

    python -m tests.benchmarks.bench_segments --articles 4000 --segment 400

The same articles go one by one through eight tasks into an empty embedded server: in one segment, in many,
and in many with permanent compaction. Analysis is not included.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aggregator.domain import Article
from aggregator.index.maintenance import SegmentMaintenance
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from tests.support.factories import Core, core, edited, story

TASKS = 8


async def measure(articles: list[Article], segment: int, compact: bool) -> tuple[list[float], int]:
    """Latencies of all articles, and the number of segments at the end."""
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(Path(directory)) as server:
        store = open_redis_store(server.url)
        try:
            service = core(store, segment_max_articles=segment, store_texts=False)
            compaction = asyncio.create_task(_compact(service)) if compact else None
            waiting = iter(articles)
            times = await asyncio.gather(*(_post(service, waiting) for _ in range(TASKS)))
            if compaction is not None:
                compaction.cancel()
            (space,) = service.index.spaces
            stack = await service.index.segments.refresh(space)
            return [ms for of_task in times for ms in of_task], stack.last + 1
        finally:
            await store.close()


async def _post(service: Core, waiting: Iterator[Article]) -> list[float]:
    times = []
    for article in waiting:
        answer = await service.ingest.submit(article)
        times.append(answer.timings_ms["lookup"] + answer.timings_ms["record"])
    return times


async def _compact(service: Core) -> None:
    while True:
        await SegmentMaintenance(service.index).run(service.clock())
        service.clock.now_ms += 86_400_000
        await asyncio.sleep(0.01)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=4000)
    parser.add_argument("--segment", type=int, default=400)
    options = parser.parse_args()
    texts = [story(i // 2, sentences=8) for i in range(options.articles)]
    articles = [Article(id=str(i), text=edited(text, i), lang="en") for i, text in enumerate(texts)]
    await measure(articles[:500], 10**7, False)  # warm-up
    for name, segment, compact in (
        ("one segment", 10**7, False),
        ("many", options.segment, False),
        ("many, compacting", options.segment, True),
    ):
        times, segments = await measure(articles, segment, compact)
        p50, p99 = np.percentile(times, [50, 99])
        print(
            f"{name:17} {segments:3} segments  p50 {p50:6.2f}  p99 {p99:6.2f}  largest {max(times):6.1f} ms"
        )


if __name__ == "__main__":
    asyncio.run(main())
