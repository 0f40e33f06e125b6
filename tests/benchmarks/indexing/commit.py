"""Rate of check-and-insert (``scripts/bench commit [--stored 1e6] [--articles 20000] [--bursts 5000]``).

Articles whose analysis is ready (fingerprint, sketch, terms) go through the ingest of the service in one
process into an embedded Valkey that already holds ``--stored`` fingerprints:

    single    32 callers, each with one article at a time
    batch     lists of 1,000
    bursts    near-copies of one article from several callers at once, through two ingest services that share
              only the store; counts bursts without exactly one "new"

Prints articles per second, CPU of this process and of the server per article, and the most expensive
functions.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
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
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Answer, Article, Sketch
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.index.blocks import PLAN
from aggregator.runtime.event_loop import tune_interpreter
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import wall_clock_ms
from tests.benchmarks.indexing import fingerprints
from tests.benchmarks.indexing.layouts import SPACE, Packed
from tests.benchmarks.indexing.measure import Server
from tests.support.cpu_spinner import add_option, awake
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.wiring import build_core

CALLERS = 32
BATCH = 1_000
COPIES = 4
SHINGLES = 320  # of an article of some 400 words


class PreparedIngest:
    """Ingest with its own store connections that takes analyses from a dictionary by article id."""

    def __init__(self, url: str, analyses: dict[str, Analysis], space: str = SPACE) -> None:
        self.store = open_redis_store(url, socket_timeout_s=HANG_LIMIT_S)
        self._analyses = analyses
        index = Index(self.store, [space], retention_ms=90 * 86_400_000)
        self.service = build_core(index, self._prepared, Policy(), clock=wall_clock_ms).ingest

    async def _prepared(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [self._analyses[article.id] for article in articles]


def unrelated_analyses(count: int, seed: int) -> Iterator[Analysis]:
    """Analyses with uniform fingerprints, disjoint sketches and 24 terms each."""
    rng = np.random.default_rng(seed)
    sample_length = sample_size(SHINGLES)
    weights = (np.full(24, 24**-0.5)).tolist()
    for number, fingerprint in enumerate(fingerprints.uniform(count, seed).tolist()):
        sample = np.sort(rng.choice(2**31, sample_length, replace=False).astype(np.uint32))
        yield Analysis(
            lang="en", space=SPACE, fingerprint=fingerprint, text_hash=rng.bytes(16), short=False,
            sketch=Sketch(SHINGLES, sample, np.arange(len(sample)) % 5 == 0),
            terms=tuple((f"term{number * 7 % 9973 + i}", w) for i, w in enumerate(weights)),
            figures=(number, number + 1), title="A headline of some length about a topic", text="",
        )  # fmt: skip


def near_copy(of: Analysis, rng: np.random.Generator) -> Analysis:
    """A copy that differs in two fingerprint bits and 1/20 of the sketch."""
    flip = sum(1 << int(bit) for bit in rng.choice(64, 2, replace=False))
    sample = of.sketch.sample.copy()
    changed = rng.choice(len(sample), len(sample) // 20, replace=False)
    sample[changed] = rng.integers(0, 2**31, len(changed))
    sample = np.unique(sample)
    return Analysis(
        lang=of.lang, space=of.space, fingerprint=of.fingerprint ^ flip, text_hash=rng.bytes(16), short=False,
        sketch=Sketch(of.sketch.size, sample, of.sketch.marks[: len(sample)]), terms=of.terms,
        figures=of.figures, title=of.title,
    )  # fmt: skip


def prepare_articles(
    prefix: str, generated: Iterator[Analysis], analyses: dict[str, Analysis]
) -> list[Article]:
    """Articles for the generated analyses, which are added to ``analyses``."""
    articles = []
    for number, analysis in enumerate(generated):
        article = Article(
            id=f"{prefix}{number}", url=f"https://news.example/{prefix}/{number}", source="Gazette"
        )
        analyses[article.id] = analysis
        articles.append(article)
    return articles


async def submit_single(ingest: PreparedIngest, articles: Sequence[Article]) -> None:
    """``CALLERS`` callers, each with one article at a time."""
    waiting = iter(articles)

    async def caller() -> None:
        for article in waiting:
            await ingest.service.submit(article)

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


async def submit_batches(ingest: PreparedIngest, articles: Sequence[Article]) -> None:
    """One list of ``BATCH`` articles after another."""
    for start in range(0, len(articles), BATCH):
        for answer in await ingest.service.submit_many(articles[start : start + BATCH]):
            assert isinstance(answer, Answer), answer


async def submit_bursts(
    ingests: Sequence[PreparedIngest], all_bursts: Sequence[Sequence[Article]]
) -> dict[str, int]:
    """Submit all copies of a burst at once, several bursts concurrently; count the wrong outcomes."""
    waiting, wrong = iter(all_bursts), Counter({"none new": 0, "several new": 0})

    async def caller() -> None:
        for burst in waiting:
            answers = await asyncio.gather(
                *(ingests[i % len(ingests)].service.submit(a) for i, a in enumerate(burst))
            )
            new = sum(answer.outcome.verdict == "new" for answer in answers)
            wrong["none new"] += new == 0
            wrong["several new"] += new > 1

    await asyncio.gather(*(caller() for _ in range(CALLERS // COPIES)))
    return {**wrong, "commit retries": sum(ingest.service.commit_retries for ingest in ingests)}


async def timed(name: str, count: int, server: Server, work: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
    """Run ``work``, print and return its figures."""
    server.settle()
    redis_s, client_s, started = server.cpu_s(), time.process_time(), time.perf_counter()
    extra = await work()
    seconds = time.perf_counter() - started
    client_s = time.process_time() - client_s
    redis_s = (server.cpu_s() or 0.0) - (redis_s or 0.0)
    figures = {
        "measured": name,
        "articles": count,
        "per_second": round(count / seconds),
        "client_cpu_us": round(client_s / count * 1e6),
        "redis_cpu_us": round(redis_s / count * 1e6),
        **(extra or {}),
    }
    print(json.dumps(figures), flush=True)
    return figures


def most_expensive(profile: cProfile.Profile, count: int) -> list[str]:
    """The 12 functions with the most own time, per article."""
    stats = pstats.Stats(profile)
    rows = []
    for (file, line, name), (_, _, own_s, _, _) in stats.stats.items():  # type: ignore[attr-defined]
        location = f"{Path(file).name}:{line} " if line else ""
        rows.append((own_s, f"{own_s / count * 1e6:6.1f} us  {location}{name}"))
    return [text for _, text in sorted(rows, reverse=True)[:12]]


async def run(url: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Run all measurements."""
    analyses: dict[str, Analysis] = {}
    layout = Packed(url, PLAN)
    layout.load(fingerprints.uniform(int(args.stored)))
    server = Server(redis.Redis.from_url(url))
    first, second = PreparedIngest(url, analyses), PreparedIngest(url, analyses)
    single = prepare_articles("s", unrelated_analyses(args.articles, 11), analyses)
    batch = prepare_articles("b", unrelated_analyses(args.articles, 12), analyses)
    rng = np.random.default_rng(13)
    burst = [
        prepare_articles(f"n{i}-", (near_copy(original, rng) for _ in range(COPIES)), analyses)
        for i, original in enumerate(unrelated_analyses(args.bursts, 14))
    ]
    await first.service.submit_many(prepare_articles("w", unrelated_analyses(500, 15), analyses))
    tune_interpreter()  # as in the service; keeps the collector from traversing the prepared articles
    before = server.memory_bytes()
    found = [await timed("single", len(single), server, lambda: submit_single(first, single))]
    found[0]["bytes_per_article"] = round((server.memory_bytes() - before) / len(single))
    print(f"memory per stored article: {found[0]['bytes_per_article']:,} bytes")
    found.append(await timed("batch", len(batch), server, lambda: submit_batches(first, batch)))
    count = args.bursts * COPIES
    found.append(await timed("bursts", count, server, lambda: submit_bursts((first, second), burst)))
    profiled = prepare_articles("p", unrelated_analyses(3_000, 16), analyses)
    for name, work in (("single", submit_single), ("batch", submit_batches)):
        profile, part = cProfile.Profile(), profiled[:1500] if name == "single" else profiled[1500:]
        profile.enable()
        await work(first, part)
        profile.disable()
        print(
            f"largest costs, {name} (with the overhead of the profiler):",
            *most_expensive(profile, len(part)),
            sep="\n  ",
        )
    await first.store.close()
    await second.store.close()
    await layout.close()
    return found


def main() -> None:
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
    main()
