"""How fast are decisions committed? ``scripts/bench commit [--stored 1e6] [--articles 20000] [--bursts 5000]``

Articles whose analysis is ready (fingerprint, sample of shingles, terms) go through the service's own
``Ingest`` in one process into an embedded Valkey that holds ``--stored`` fingerprints already:

    single    32 callers, each with one article at a time
    batch     lists of 1,000
    bursts    near-copies of one article from several callers at the same moment, through two instances that
              share nothing but the store; counted: bursts without exactly one "new"

Printed: articles per second, CPU of this process and of the server per article, and what took most of it.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import redis
import uvloop

from aggregator.analysis.shingles import sample_size
from aggregator.app import build_core
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Answer, Article, Sketch
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.index.blocks import PLANS
from aggregator.runtime.event_loop import tune_interpreter
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import wall_clock_ms
from tests.benchmarks.indexing import fingerprints
from tests.benchmarks.indexing.layouts import SPACE, Packed
from tests.benchmarks.indexing.measure import Server
from tests.support.cpu_spinner import add_option, awake

CALLERS = 32
BATCH = 1_000
COPIES = 4
SHINGLES = 320  # of an article of some 400 words


class Desk:
    """Ready analyses by id, and an ingest over a store of its own connections."""

    def __init__(self, url: str, ready: dict[str, Analysis]) -> None:
        self.store = open_redis_store(url)
        self._ready = ready
        index = Index(self.store, [SPACE], retention_ms=90 * 86_400_000)
        self.ingest = build_core(index, self._analyse, Policy(), clock=wall_clock_ms).ingest

    async def _analyse(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [self._ready[article.id] for article in articles]


def analyses(count: int, seed: int) -> Iterator[Analysis]:
    """Unrelated articles: uniform fingerprints, samples that share nothing, two dozen terms."""
    rng = np.random.default_rng(seed)
    sizes = sample_size(SHINGLES)
    weights = (np.full(24, 24**-0.5)).tolist()
    for number, fingerprint in enumerate(fingerprints.uniform(count, seed).tolist()):
        sample = np.sort(rng.choice(2**31, sizes, replace=False).astype(np.uint32))
        yield Analysis(
            lang="en", space=SPACE, fingerprint=fingerprint, text_hash=rng.bytes(16), short=False,
            sketch=Sketch(SHINGLES, sample),
            terms=tuple((f"term{number * 7 % 9973 + i}", w) for i, w in enumerate(weights)),
            figures=(number, number + 1), title="A headline of some length about a matter", text="",
        )  # fmt: skip


def near_copy(of: Analysis, rng: np.random.Generator) -> Analysis:
    """Two bits and a twentieth of the wording differ."""
    flip = sum(1 << int(bit) for bit in rng.choice(64, 2, replace=False))
    sample = of.sketch.sample.copy()
    changed = rng.choice(len(sample), len(sample) // 20, replace=False)
    sample[changed] = rng.integers(0, 2**31, len(changed))
    return Analysis(
        lang=of.lang, space=of.space, fingerprint=of.fingerprint ^ flip, text_hash=rng.bytes(16), short=False,
        sketch=Sketch(of.sketch.size, np.unique(sample)), terms=of.terms, figures=of.figures, title=of.title,
    )  # fmt: skip


def articles(prefix: str, made: Iterator[Analysis], ready: dict[str, Analysis]) -> list[Article]:
    """Their articles, with the analyses laid ready."""
    found = []
    for number, analysis in enumerate(made):
        article = Article(
            id=f"{prefix}{number}", url=f"https://news.example/{prefix}/{number}", source="Gazette"
        )
        ready[article.id] = analysis
        found.append(article)
    return found


async def singles(desk: Desk, given: Sequence[Article]) -> None:
    """Each caller takes the next one as soon as it has its answer."""
    waiting = iter(given)

    async def caller() -> None:
        for article in waiting:
            await desk.ingest.submit(article)

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


async def batches(desk: Desk, given: Sequence[Article]) -> None:
    """One list after another."""
    for start in range(0, len(given), BATCH):
        for answer in await desk.ingest.submit_many(given[start : start + BATCH]):
            assert isinstance(answer, Answer), answer


async def bursts(desks: Sequence[Desk], given: Sequence[Sequence[Article]]) -> dict[str, int]:
    """All copies of a burst at once, some bursts side by side; how many bursts had none or several new."""
    waiting, wrong = iter(given), Counter({"none new": 0, "several new": 0})

    async def caller() -> None:
        for burst in waiting:
            answers = await asyncio.gather(
                *(desks[i % len(desks)].ingest.submit(a) for i, a in enumerate(burst))
            )
            new = sum(answer.outcome.verdict == "new" for answer in answers)
            wrong["none new"] += new == 0
            wrong["several new"] += new > 1

    await asyncio.gather(*(caller() for _ in range(CALLERS // COPIES)))
    return {**wrong, "decided again": sum(d.ingest.commit_retries for d in desks)}


async def timed(name: str, count: int, server: Server, work: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
    """Run, print, and give the figures."""
    server.settle()
    redis_s, client_s, started = server.cpu_s(), time.process_time(), time.perf_counter()
    more = await work()
    seconds = time.perf_counter() - started
    client_s = time.process_time() - client_s
    redis_s = (server.cpu_s() or 0.0) - (redis_s or 0.0)
    figures = {
        "measured": name,
        "articles": count,
        "per_second": round(count / seconds),
        "client_cpu_us": round(client_s / count * 1e6),
        "redis_cpu_us": round(redis_s / count * 1e6),
        **(more or {}),
    }
    print(json.dumps(figures), flush=True)
    return figures


def costs(profile: cProfile.Profile, count: int) -> list[str]:
    """Where the time of this process went, largest first, per article."""
    stats = pstats.Stats(profile)
    rows = []
    for (file, line, name), (_, _, own_s, _, _) in stats.stats.items():  # type: ignore[attr-defined]
        place = f"{Path(file).name}:{line} " if line else ""
        rows.append((own_s, f"{own_s / count * 1e6:6.1f} us  {place}{name}"))
    return [text for _, text in sorted(rows, reverse=True)[:12]]


async def run(url: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Everything, in order."""
    ready: dict[str, Analysis] = {}
    layout = Packed(url, PLANS["4x16"])
    layout.load(fingerprints.uniform(int(args.stored)))
    server, one, other = Server(redis.Redis.from_url(url)), Desk(url, ready), Desk(url, ready)
    single = articles("s", analyses(args.articles, 11), ready)
    batch = articles("b", analyses(args.articles, 12), ready)
    rng = np.random.default_rng(13)
    burst = [
        articles(f"n{i}-", (near_copy(original, rng) for _ in range(COPIES)), ready)
        for i, original in enumerate(analyses(args.bursts, 14))
    ]
    await one.ingest.submit_many(articles("w", analyses(500, 15), ready))
    tune_interpreter()  # as the service does: what lies ready here would be looked through again and again
    before = server.memory_bytes()
    found = [await timed("single", len(single), server, lambda: singles(one, single))]
    found[0]["bytes_per_article"] = round((server.memory_bytes() - before) / len(single))
    print(f"memory per stored article: {found[0]['bytes_per_article']:,} bytes")
    found.append(await timed("batch", len(batch), server, lambda: batches(one, batch)))
    found.append(await timed("bursts", args.bursts * COPIES, server, lambda: bursts((one, other), burst)))
    more = articles("p", analyses(3_000, 16), ready)
    for name, work in (("single", singles), ("batch", batches)):
        profile, part = cProfile.Profile(), more[:1500] if name == "single" else more[1500:]
        profile.enable()
        await work(one, part)
        profile.disable()
        print(
            f"largest costs, {name} (profiled, so slower than measured):",
            *costs(profile, len(part)),
            sep="\n  ",
        )
    await one.store.close()
    await other.store.close()
    await layout.close()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench commit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--stored", type=float, default=1e6)
    parser.add_argument("--articles", type=int, default=20_000)
    parser.add_argument("--bursts", type=int, default=5_000)
    parser.add_argument("--json", help="write all figures to this file")
    add_option(parser)
    args = parser.parse_args()
    with (
        awake(args.awake),
        tempfile.TemporaryDirectory() as directory,
        EmbeddedServer(directory) as server,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        found = runner.run(run(server.url, args))
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
