"""Latency and memory of search in a large index (``scripts/bench search [--articles 1e6] [--dir DIR]``).

Generated articles go through the transactions of the service into an embedded Valkey: headlines of 8 words
whose frequencies follow the Zipf-Mandelbrot law (offset 20, 200,000 words: the most frequent word is in 4 %
of the headlines, the 100th in 0.7 %, as in headlines_en_dev), the 6 heaviest terms of each in the term index,
40 outlets. The whole index is in the article stream, as when 10^6 articles arrive within 8 days. ``--dir``
keeps the store, so that it is loaded only once. The detector does not run. Then, over HTTP, of one worker:

    first search          of a process that has not read a headline yet, and the time until it has read all
    memory                growth of the resident memory of the worker by that
    rare, pairs ...       GET /v1/search, one caller after another, by kind of query
    8 callers             the same mix of queries from 8 callers without pauses

``--scan`` measures the headline table alone, without a store: its memory and the processor time of a scan.
``--terms FILE ...`` prints instead which share of the words of headlines the term index has, for a sample of
archives (JSONL with lang, title, text): what search would find without the headlines in memory.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import numpy.typing as npt
import uvloop

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.background.tasks import DETECTOR_LEASE_KEY
from aggregator.domain import Article, ArticleRecord, Outcome, Sketch, StreamItem, article_number_at
from aggregator.index import Index
from aggregator.index.keys import INDEXED_TERMS
from aggregator.index.upkeep import format_version
from aggregator.queries.headline_table import HeadlineTable, SearchFilter, TermGroup
from aggregator.store.base import AppendMany
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.periodic_task import Lease
from aggregator.store.redis import open_redis_store
from aggregator.time_units import DAY_MS, wall_clock_ms
from tests.benchmarks.bench_service import running_service
from tests.support.processes import usage

VOCABULARY, OFFSET, HEADLINE_WORDS = 200_000, 20, 8
COMMIT_ARTICLES = 500
LEASE_MS, RENEWAL_S = 60_000, 2.0


def word(rank: int) -> str:
    """A made-up word that no stemmer changes and no stop list has."""
    digits = "bdgkmpvz"
    return "q" + "".join(digits[rank >> 3 * place & 7] + "aou"[place % 3] for place in range(6)) + "x"


def ranks(rng: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    """Ranks of random words by the Zipf-Mandelbrot law, from 1."""
    spread = (VOCABULARY / OFFSET + 1) ** rng.random(count) - 1
    return (OFFSET * spread).astype(np.int64) + 1


def articles(count: int, space: str, now_ms: int) -> Iterator[ArticleRecord]:
    """Generated articles with headlines of the last eight days, oldest first."""
    rng = np.random.default_rng(7)
    sketch = Sketch(320, np.sort(rng.integers(0, 2**31, 128).astype(np.uint32)), np.zeros(128, np.uint8))
    spread = 7 * DAY_MS / count
    weights = [0.4 - 0.03 * place for place in range(HEADLINE_WORDS)]
    for position in range(count):
        if position % 1000 == 0:
            drawn = -np.sort(-ranks(rng, 1000 * HEADLINE_WORDS).reshape(1000, HEADLINE_WORDS))
            orders = rng.permuted(np.tile(np.arange(HEADLINE_WORDS), (1000, 1)), axis=1).tolist()
        words = [word(rank) for rank in drawn[position % 1000].tolist()]  # the rarest first: they weigh most
        number = article_number_at(now_ms - int((count - position) * spread), position % 1024)
        url = f"news.example/{position:08d}"
        yield ArticleRecord(
            number=number, first_version=number, id=url, space=space, lang="en", fingerprint=position,
            text_hash=position.to_bytes(16), short=False,
            title=" ".join(words[place] for place in orders[position % 1000]).capitalize(),
            url=f"https://{url}", source=f"paper{position % 40}.example", published_at_ms=number >> 22,
            sketch=sketch, terms=tuple(zip(dict.fromkeys(words), weights, strict=False)),
        )  # fmt: skip


async def load(index: Index, space: str, count: int) -> None:
    """Store the articles, without postings of fingerprints and sketches: search reads none."""
    started = time.perf_counter()
    chunk: list[ArticleRecord] = []
    for position, record in enumerate(articles(count, space, wall_clock_ms()), 1):
        chunk.append(record)
        if len(chunk) < COMMIT_ARTICLES and position < count:
            continue
        snapshot = await index.segments.read({space: ()})
        segment = index.transactions(snapshot.stacks[space])
        made = [segment.insert(record, Outcome("new"), []) for record in chunk]
        kept = [
            replace(each, writes=tuple(w for w in each.writes if not isinstance(w, AppendMany)))
            for each in made
        ]
        await index.records.insert(chunk, {})
        assert not any(await index.store.commit_many(kept))
        chunk = []
        if position % 50_000 == 0:
            print(
                f"  {position:,} loaded, {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True
            )


@contextlib.asynccontextmanager
async def without_detector(url: str) -> AsyncIterator[None]:
    """Hold the lease of the background work: it would read all articles during the measurement."""
    store = open_redis_store(url)
    lease = Lease(store, DETECTOR_LEASE_KEY, LEASE_MS)

    async def renew() -> None:
        while True:
            await lease.acquire()
            await asyncio.sleep(RENEWAL_S)

    renewal = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewal.cancel()
        await lease.close()
        await store.close()


def queries(rng: np.random.Generator, count: int) -> dict[str, list[dict[str, str]]]:
    """Query strings by kind."""
    rare = rng.integers(5_000, VOCABULARY, count).tolist()
    common = rng.integers(1, 30, (count, 4)).tolist()
    drawn = ranks(rng, 3 * count).reshape(count, 3).tolist()
    kinds = {
        "one rare word": [word(rank) for rank in rare],
        "a rare and a common word": [f"{word(a)} {word(b[0])}" for a, b in zip(rare, common, strict=True)],
        "three words by frequency": [" ".join(map(word, some)) for some in drawn],
        "one of the 30 commonest words": [word(some[0]) for some in common],
        "four of the 30 commonest words": [" ".join(map(word, some)) for some in common],
    }
    made = {kind: [{"q": q} for q in given] for kind, given in kinds.items()}
    made["three words of one outlet"] = [
        {**q, "source": f"paper{at % 40}.example"} for at, q in enumerate(made["three words by frequency"])
    ]
    return made


async def measure(url: str, count: int, args: argparse.Namespace) -> None:
    """Measure over HTTP."""
    async with (
        without_detector(url),
        running_service("--store-url", url) as running,
        aiohttp.ClientSession() as session,
    ):

        async def search(path: str, query: dict[str, str]) -> tuple[float, dict[str, Any]]:
            started = time.perf_counter()
            async with session.get(running.url + path, params=query) as response:
                body = await response.json()
                assert response.status == 200, body
            return (time.perf_counter() - started) * 1000, body

        before = running.usage()
        first_ms, _ = await search("/v1/search", {"q": word(100)})
        started = time.perf_counter()
        searched: dict[str, Any] = {"loading": True}
        while searched["loading"]:
            await asyncio.sleep(0.5)
            _, body = await search("/v1/articles", {"limit": "1"})
            searched = body["searched"]
        after = running.usage()
        print(f"first search {first_ms:.0f} ms; all read after {time.perf_counter() - started:.0f} s")
        print(f"  {searched['articles']:,} headlines; usage before {before}, after {after}", flush=True)
        mix: list[dict[str, str]] = []
        for kind, given in queries(np.random.default_rng(8), args.questions).items():
            mix += given[: args.questions // 4]
            taken, totals, cpu_s = [], [], running.usage().cpu_s["service"]
            for query in given:
                ms, body = await search("/v1/search", query)
                taken.append(ms)
                totals.append(body["total"])
            cpu_ms = (running.usage().cpu_s["service"] - cpu_s) * 1000 / len(given)
            print_latencies(kind, taken, f"CPU {cpu_ms:5.1f} ms  {np.mean(totals):9,.0f} matches")
        taken = []
        waiting = iter([mix[at] for at in np.random.default_rng(9).permutation(len(mix))])

        async def caller() -> None:
            for query in waiting:
                taken.append((await search("/v1/search", query))[0])

        await asyncio.gather(*(caller() for _ in range(args.callers)))
        print_latencies(f"{args.callers} callers, all kinds", taken, "")
        taken = [(await search("/v1/articles", {"source": f"paper{n % 40}.example"}))[0] for n in range(100)]
        print_latencies("list of one outlet", taken, "")


def print_latencies(kind: str, taken: Sequence[float], note: str) -> None:
    """One line of results."""
    p50, p99 = np.percentile(taken, [50, 99])
    print(f"{kind:34} p50 {p50:6.1f}  p99 {p99:6.1f}  largest {max(taken):6.1f} ms  {note}", flush=True)


async def run(directory: Path, args: argparse.Namespace) -> None:
    """Load the store unless it is loaded, and measure."""
    count, spaces = int(args.articles), Analyzer(load_models()).spaces
    space = next(name for name in spaces if name.startswith("en."))
    done = directory / "loaded.json"
    with EmbeddedServer(directory) as server:
        if not done.exists():
            store = open_redis_store(server.url)
            await format_version.write(store)
            await load(Index(store, spaces, retention_ms=90 * DAY_MS), space, count)
            await store.close()
            done.write_text(json.dumps([count, space]))
        if json.loads(done.read_text()) != [count, space]:
            sys.exit(f"{directory} holds another index ({done.read_text()}); use another --dir.")
        await measure(server.url, count, args)


def measure_scan(count: int) -> None:
    """Memory of a table of ``count`` headlines, and processor time of a scan for words of some ranks."""
    before = usage(os.getpid()).resident_mb["generator"]
    table = HeadlineTable(count)
    for record in articles(count, "en.scan", wall_clock_ms()):
        table.add(
            StreamItem(
                record.number, record.number, record.id, "new", record.arrived_ms, title=record.title,
                source=record.source, lang="en", space="en.scan", url=record.url,
            )
        )  # fmt: skip
    grown = usage(os.getpid()).resident_mb["generator"] - before
    columns = (column for chunk in table._chunks for column in chunk.columns.values())
    allocated = sum(column.buffer_info()[1] * column.itemsize for column in columns)
    print(f"{len(table):,} headlines: {allocated / len(table):.0f} bytes each in columns, "
          f"{grown * 1e6 / len(table):.0f} of resident memory")  # fmt: skip
    for searched in ([20_000], [500, 20_000], [1], [1, 2, 3, 4], []):
        groups = [TermGroup(frozenset({"en"}), tuple(map(word, searched)))] if searched else []
        taken, found = [], 0
        for _ in range(9):
            started = time.process_time()
            found = sum(len(hits.numbers) for hits in table.search(groups, SearchFilter(), {}))
            taken.append((time.process_time() - started) * 1000)
        print(
            f"words of ranks {searched!s:16} {np.median(taken):6.1f} ms of processor time, {found:,} matches"
        )


def measure_terms(files: Sequence[str], sample: int) -> None:
    """Share of the terms of headlines that are among the indexed and the stored terms of the article."""
    analyzer = Analyzer(load_models())
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in islice(lines, 10 * sample)]
        total = indexed = stored = 0
        for row in rows[::10]:
            article = Article("x", row["title"], row.get("text") or "", lang=row["lang"])
            analysis = analyzer.analyze(article)
            terms, headline = [t for t, _ in analysis.terms], set(tokenize(row["title"], analysis.lang))
            total += len(headline)
            indexed += len(headline.intersection(terms[:INDEXED_TERMS]))
            stored += len(headline.intersection(terms))
        shares = f"{indexed / total:.2f} indexed, {stored / total:.2f} stored"
        print(f"{Path(file).name:28} {total:,} words, {shares}")


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=float, default=1e6)
    parser.add_argument("--questions", type=int, default=200, help="queries of each kind")
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--dir", help="keep the store here, and load it only when it is empty")
    parser.add_argument("--scan", action="store_true", help="measure the table alone")
    parser.add_argument("--terms", nargs="+", metavar="FILE", help="archives, .jsonl.gz")
    args = parser.parse_args()
    if args.scan:
        measure_scan(int(args.articles))
        return
    if args.terms:
        measure_terms(args.terms, sample=600)
        return
    with contextlib.ExitStack() as stack:
        directory = args.dir or stack.enter_context(tempfile.TemporaryDirectory())
        Path(directory).mkdir(parents=True, exist_ok=True)
        uvloop.run(run(Path(directory), args))


if __name__ == "__main__":
    main()
