"""Steady state over many retention periods (``scripts/bench steady [--articles 2000] [--periods 20]``).

The clock is compressed: it advances with the articles, ``--articles`` of them in a retention period of eight
days, whatever time they take. Ingest, retention, compaction and sweep are those of the service, in this
process, over an embedded store; eight callers post made-up articles without a pause, one in eight a near-copy
of a recent one. The upkeep runs ``--runs`` times per period in parallel with the posts, a step at a time. (A
service gives it 5 % of the time, and one run takes several seconds of processor time however few articles
there are, since compaction asks for every possible bucket of a sealed segment: with a retention of minutes it
would never catch up, with days it does.) Prints a JSON line per period:

    articles/s, p50, p99, p99.9   posts: look-up and commit, in ms
    near                   p99.9 of the posts during which a segment was sealed or dropped, and their number
    step                   p99.9 of the time of one step of upkeep in ms
    keys, MB, segments     of the store at the end of the period: all keys, memory, live segments
    debt                   sealed segments that compaction has not covered

and over the second half the slope of each in % of its mean per period, with its standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import redis

from aggregator.domain import Article
from aggregator.index import keys
from aggregator.index.upkeep.compaction import CompactionCursor
from aggregator.index.upkeep.maintenance import SegmentMaintenance
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import DAY_MS
from tests.support.factories import Clock, core
from tests.support.hang_limit import HANG_LIMIT_S

PERIOD_MS = 8 * DAY_MS
CALLERS, WORDS, VOCABULARY = 8, 250, 20_000
COPY_ONE_IN, COPIED_CHANGES = 8, 5
SEGMENT_ARTICLES = 4096  # few enough that all are sampled: segments are sealed by their age as well
SLOPES = ("articles/s", "p50", "p99", "p99.9", "step", "keys", "MB", "segments", "debt")
Figures = dict[str, float]


def made_up(rng: random.Random, number: int, recent: list[str]) -> Article:
    """An article of invented words; one in ``COPY_ONE_IN`` repeats a recent text with a few changes."""
    if recent and number % COPY_ONE_IN == 0:
        words = rng.choice(recent).split()
        for position in rng.sample(range(len(words)), COPIED_CHANGES):
            words[position] = _word(rng.randrange(VOCABULARY))
    else:
        words = [_word(rng.randrange(VOCABULARY)) for _ in range(WORDS)]
    text = " ".join(words)
    recent.append(text)
    del recent[:-50]
    return Article(id=str(number), title=f"Report {number}", text=text, lang="eo")


def _word(rank: int) -> str:
    return "".join("bdfgklmnprstvz"[rank // 14**i % 14] + "aeiou"[rank // 5**i % 5] for i in range(4))


def slope(values: Sequence[float]) -> tuple[float, float]:
    """Change per step relative to the mean, and its standard error, by least squares."""
    y = np.array(values, float)
    x = np.arange(len(y)) - (len(y) - 1) / 2
    by_step = float((x * y).sum() / (x * x).sum())
    left = y - y.mean() - by_step * x
    error = float(np.sqrt((left**2).sum() / max(1, len(y) - 2) / (x * x).sum()))
    return (by_step / y.mean(), error / y.mean()) if y.mean() else (0.0, 0.0)


class Run:
    """Ingest and upkeep over one store, with a clock that follows the articles."""

    def __init__(self, url: str, articles: int, runs: int) -> None:
        self._articles, self._runs, self._clock = articles, runs, Clock()
        self._store = open_redis_store(url, socket_timeout_s=HANG_LIMIT_S)
        self._client = redis.Redis.from_url(url)
        self._core = core(
            self._store,
            retention_ms=PERIOD_MS,
            clock=self._clock,
            segment_max_articles=SEGMENT_ARTICLES,
            store_texts=False,
        )
        (self._space,) = self._core.index.spaces
        self._upkeep = SegmentMaintenance(self._core.index)
        self._rng, self._recent = random.Random(1), list[str]()
        self._posted = 0
        self._posts: list[tuple[float, float, float]] = []  # start and end, s; ms of look-up and commit
        self._steps_ms: list[float] = []
        self._changes_s: list[float] = []

    async def period(self) -> Figures:
        """Post the articles of one period, with upkeep in parallel; its figures."""
        self._posts, self._steps_ms, self._changes_s = [], [], []
        started = time.perf_counter()
        for _ in range(self._runs):
            upkeep = asyncio.create_task(self._run_upkeep())
            waiting = iter(range(self._posted, self._posted + self._articles // self._runs))
            self._posted += self._articles // self._runs
            await asyncio.gather(*(self._caller(waiting) for _ in range(CALLERS)))
            posted_s = time.perf_counter()
            await upkeep
            started += time.perf_counter() - posted_s  # the rest of the upkeep, without posts
        return await self._figures(time.perf_counter() - started)

    async def close(self) -> None:
        """Close the connections."""
        await self._store.close()
        self._client.close()

    async def _caller(self, waiting: Iterator[int]) -> None:
        for number in waiting:
            article = made_up(self._rng, number, self._recent)
            self._clock.now_ms += PERIOD_MS // self._articles
            started = time.perf_counter()
            answer = await self._core.ingest.submit(article)
            taken = answer.timings_ms["lookup"] + answer.timings_ms["record"]
            self._posts.append((started, time.perf_counter(), taken))

    async def _run_upkeep(self) -> None:
        before = await self._core.index.segments.head(self._space)
        started = time.perf_counter()
        async for _ in self._upkeep.steps(self._clock()):
            self._steps_ms.append((time.perf_counter() - started) * 1000)
            stack = await self._core.index.segments.stack(self._space)
            if (stack.first, stack.last) != (before.first, before.last):
                self._changes_s.append(time.perf_counter())
                before = await self._core.index.segments.head(self._space)
            started = time.perf_counter()

    async def _figures(self, seconds: float) -> Figures:
        head = await self._core.index.segments.head(self._space)
        (raw,) = await self._store.read([keys.compaction_cursor(self._space)])
        cursor = msgspec.msgpack.decode(raw, type=CompactionCursor) if raw else CompactionCursor()
        taken = np.array([ms for *_, ms in self._posts])
        near = [ms for a, b, ms in self._posts if any(a <= change <= b for change in self._changes_s)]
        p50, p99, p999 = np.percentile(taken, [50, 99, 99.9])
        return {
            "articles/s": len(taken) / seconds,
            "p50": float(p50),
            "p99": float(p99),
            "p99.9": float(p999),
            "near": float(np.percentile(near, 99.9)) if near else 0.0,
            "posts near": len(near),
            "changes": len(self._changes_s),
            "step": float(np.percentile(self._steps_ms, 99.9)),
            "keys": self._client.dbsize(),
            "MB": self._client.info("memory")["used_memory"] / 1e6,
            "segments": head.last - head.first + 1,
            "debt": max(0, head.last - 1 - max(cursor.covered_segment, head.first - 1)),
        }


async def run(articles: int, periods: int, runs: int) -> list[Figures]:
    """Run so many periods on a new store; print and return the figures of each."""
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(Path(directory)) as server:
        running, found = Run(server.url, articles, runs), []
        for _ in range(periods):
            found.append(await running.period())
            print(json.dumps({name: round(value, 2) for name, value in found[-1].items()}), flush=True)
        await running.close()
    return found


def print_slopes(found: Sequence[Figures]) -> None:
    """Print the slopes over the second half."""
    half = found[len(found) // 2 :]
    for name in SLOPES:
        values = [figures[name] for figures in half]
        change, error = slope(values)
        print(f"{name:12} mean {np.mean(values):12,.1f}   slope {change:+7.2%} +- {error:.2%} per period")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=2000, help="per retention period")
    parser.add_argument("--periods", type=int, default=20)
    parser.add_argument("--runs", type=int, default=2, help="of the upkeep per period")
    args = parser.parse_args()
    print_slopes(asyncio.run(run(args.articles, args.periods, args.runs)))


if __name__ == "__main__":
    main()
