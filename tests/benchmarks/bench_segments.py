"""What do seals and compaction cost those who are waiting? Look-up and commit of each article, in ms.

    python tests/benchmarks/bench_segments.py --articles 4000 --segment 400

The same articles, one by one through eight tasks into an empty embedded server: in one segment, in many,
and in many with compaction all the time. Time of analysis is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

import numpy as np

from aggregator.domain import Article
from aggregator.index.compaction import Compactor
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from tests.support.factories import Core, core, edited, story

TASKS = 8


async def measure(articles: list[Article], segment: int, tidy: bool) -> tuple[list[float], int]:
    """Times of all articles, and how many segments there were in the end."""
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(Path(directory)) as server:
        store = open_redis_store(server.url)
        try:
            room = core(store, segment_max_articles=segment, store_texts=False)
            keeper = asyncio.create_task(_tidy(room)) if tidy else None
            waiting = iter(articles)
            times = await asyncio.gather(*(_post(room, waiting) for _ in range(TASKS)))
            if keeper is not None:
                keeper.cancel()
            (space,) = room.index.spaces
            layers = await room.index.segments.refresh(space)
            return [ms for some in times for ms in some], layers.last + 1
        finally:
            await store.close()


async def _post(room: Core, waiting) -> list[float]:  # type: ignore[no-untyped-def]
    times = []
    for article in waiting:
        answer = await room.ingest.submit(article)
        times.append(answer.timings_ms["lookup"] + answer.timings_ms["record"])
    return times


async def _tidy(room: Core) -> None:
    while True:
        await Compactor(room.index).run(room.clock())
        room.clock.now_ms += 86_400_000
        await asyncio.sleep(0.01)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--articles", type=int, default=4000)
    parser.add_argument("--segment", type=int, default=400)
    chosen = parser.parse_args()
    texts = [story(i // 2, sentences=8) for i in range(chosen.articles)]
    articles = [Article(id=str(i), text=edited(text, i), lang="en") for i, text in enumerate(texts)]
    await measure(articles[:500], 10**7, False)  # warm
    for name, segment, tidy in (
        ("one segment", 10**7, False),
        ("many", chosen.segment, False),
        ("many, compacting", chosen.segment, True),
    ):
        times, segments = await measure(articles, segment, tidy)
        p50, p99 = np.percentile(times, [50, 99])
        print(
            f"{name:17} {segments:3} segments  p50 {p50:6.2f}  p99 {p99:6.2f}  largest {max(times):6.1f} ms"
        )


if __name__ == "__main__":
    asyncio.run(main())
