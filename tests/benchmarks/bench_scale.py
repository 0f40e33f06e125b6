"""Cost of a large index with the distribution of real news (``scripts/bench scale --articles 1e5,1e6,1e7``).

Each size is loaded in bulk into a new embedded store (``scale/``): real articles as the newest, before them
renamed copies of real ones. Then 1,200 real articles that are not stored are posted to a service with one
worker from eight callers. Prints a JSON line per size:

    block, sketch, term   entries and kB that a look-up reads (term: of /related); p99
    records compared      of candidates, after the limits; within 7 bits: neighbors by fingerprint alone
    CPU ms                per posted article: client (all processes of the service) and server (store)
    insert, related, search   latencies in ms; search finds the headlines of the article stream alone
    B per article         memory of the store, in all and per kind of key, as loaded; above
                          ``--all-records`` only those records and bindings are loaded that the look-ups and
                          the answers read (``records``), and the others counted as large as these
    snapshot, recovery    the store writes all it holds, and is restarted with it; start-up: of the service
    compaction            of the segment, after it was sealed: seconds, CPU, time of a step

then, for each cost, a fit a + b log N + c N, its error at each size when that is left out, and what it
predicts for 10^8. ``--overload S`` also prints the table of ``scripts/bench overload`` with rows of S
seconds, its articles posted to a service on the loaded store. ``--entries`` only counts what look-ups read,
without a store. ``--check`` prints instead lines for equal numbers of real articles and of articles that
were generated from half as many.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import redis

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.domain import Analysis, Article
from aggregator.index import keys
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import SKETCH_POSTING_BYTES
from aggregator.index.segments import sampling_exponent_for
from aggregator.index.upkeep import format_version
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import DAY_MS, wall_clock_ms
from tests.benchmarks import bench_overload
from tests.benchmarks.scale import corpus, fitting, loading, measuring, reading
from tests.benchmarks.scale.measuring import Figures, print_result
from tests.benchmarks.scale.replicas import Replicas, article_numbers

PREDICTED = 1e8
SPREAD_MS = 56 * DAY_MS
READS = 300
KINDS = {b"b": "blocks B", b"s": "sketches B", b"t": "terms B"}
ARTICLES = "records, bindings B"
COSTS = (
    "block entries", "sketch entries", "sketch entries p99", "server CPU ms", "client CPU ms", "CPU ms",
    "insert p50 ms", "insert p99 ms", "related p99 ms", "B per article", "snapshot s", "recovery s",
    "compaction s",
)  # fmt: skip
Corpus = Sequence[tuple[Article, Analysis]]


class Stored:
    """An index of ``count`` generated articles in an empty store."""

    def __init__(
        self, server: EmbeddedServer, replicas: Replicas, articles: Sequence[Article], space: str, count: int
    ) -> None:
        self.replicas, self.space, self.count = replicas, space, count
        self.figures: Figures = {}
        self._articles, self._tag = articles, keys.tag(space, 0)
        self._client = redis.Redis.from_url(server.url)
        self._client.config_set("appendonly", "no")
        self._connection = loading.Connection(unquote(server.url.removeprefix("unix://")))
        self._rounds = replicas.rounds(count)
        self._numbers = article_numbers(count, wall_clock_ms() - 60_000, SPREAD_MS)
        self._used = self._client.info("memory")["used_memory"]

    def load_buckets(self) -> None:
        """Write all buckets, and count their memory per kind."""
        started, kind = time.perf_counter(), b"b"
        made = loading.buckets(self.replicas, self._rounds, self._numbers, self._tag, PLAN)
        for key, value in made:
            if keys.kind_of(key) not in (kind, b"w"):
                self._count_memory(KINDS[kind], self.count)
                kind = keys.kind_of(key)
            self._connection.set(key, value)
        self._count_memory(KINDS[kind], self.count)
        exponent = sampling_exponent_for(measuring.UNLIMITED)
        sample = loading.sampled_numbers(self._numbers, exponent)
        self._connection.set(self._tag + keys.SAMPLES, sample)
        self.figures["load s"] = time.perf_counter() - started

    def load_articles(self, wanted: Sequence[int] | None) -> None:
        """Write records and bindings, of all articles or of those with the ``wanted`` numbers."""
        started, flags = time.perf_counter(), None
        if wanted is not None:
            flags = np.zeros(self.count, bool)
            flags[self._numbers.searchsorted(np.array(wanted, np.uint64))] = True
        writer = loading.ArticleWriter(self.replicas, self._articles, self.space, self._tag)
        written = writer.write(self._connection, self._rounds, self._numbers, flags)
        self._count_memory(ARTICLES, max(1, written))
        self._connection.close()
        self.figures["B per article"] = sum(self.figures[kind] for kind in (*KINDS.values(), ARTICLES))
        self.figures["records"] = written
        self.figures["load s"] += time.perf_counter() - started

    def questions(self, count: int) -> list[tuple[str, Analysis]]:
        """Ids of stored articles, with the analyses that their records have."""
        rng, found = random.Random(4), []
        for _ in range(count):
            position = rng.randrange(self.count)
            round_ = next(r for r in self._rounds if position < r.last)
            member = int(self.replicas.members(round_)[position - round_.first])
            found.append((loading.ID % position, self.replicas.analyses[member]))
        return found

    def numbers_of(self, ids: Sequence[str]) -> list[int]:
        """Article numbers of ids."""
        return [int(self._numbers[int(id_.rpartition("/")[2], 16)]) for id_ in ids]

    def _count_memory(self, name: str, count: int) -> None:
        self._connection.flush()
        used = self._client.info("memory")["used_memory"]
        self.figures[name] = (used - self._used) / count
        self._used = used


async def measure(
    found: Corpus,
    replicas: Replicas,
    probes: Corpus,
    count: int,
    label: str,
    *,
    upkeep: bool,
    all_records: bool = True,
    reads: int = READS,
    flood: Corpus = (),
    overload_s: float = 0.0,
) -> Figures:
    """Load one size into a new store and measure it.

    Afterwards ``flood`` is posted at several times the capacity, in rows of ``overload_s`` seconds; 0: not.
    """
    spaces = Analyzer(load_models()).spaces
    space = found[0][1].space
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(Path(directory)) as server:
        store = open_redis_store(server.url)
        await format_version.write(store)  # before any record, or the service refuses the data
        await store.close()
        stored = Stored(server, replicas, [article for article, _ in found], space, count)
        stored.load_buckets()
        figures, candidates = await measuring.read_sizes(server.url, spaces, space, [*probes, *flood])
        questions = stored.questions(reads)
        wanted = None
        if not all_records:
            asked = stored.numbers_of([id_ for id_, _ in questions])
            terms = await measuring.numbers_by_terms(server.url, space, [a for _, a in questions])
            wanted = [*candidates, *asked, *terms]
        stored.load_articles(wanted)
        figures |= stored.figures
        titles = [article.title for article, _ in random.Random(5).choices(found, k=reads // 3)]
        words = [random.Random(6).choice(title.split() or ["news"]) for title in titles]
        ids = [id_ for id_, _ in questions]
        figures |= await measuring.serve(server.url, [article for article, _ in probes], ids, words)
        if overload_s:
            await print_overload(server.url, [article for article, _ in flood], overload_s)
        if upkeep:
            figures |= measuring.snapshot(redis.Redis.from_url(server.url))
            server.stop(timeout_s=600)
            started = time.perf_counter()
            server.start()
            figures["recovery s"] = time.perf_counter() - started
            figures |= await measuring.compact(server.url, spaces, space, wall_clock_ms())
    print_result(count, label, figures)
    return figures


async def print_overload(url: str, articles: Sequence[Article], seconds: float) -> None:
    """Post articles to a service on a loaded store at several times its capacity, and print the table."""
    requests = bench_overload.Requests(
        {"id": article.id, "title": article.title, "text": article.text, "source": article.source}
        for article in articles
    )
    rows = await bench_overload.measure(requests, bench_overload.Rows(seconds), ("--store-url", url))
    print(bench_overload.table(rows), flush=True)


def held_out(count: int, probes: int) -> np.ndarray:
    """Flags of the articles that are posted instead of stored, evenly spread."""
    flags = np.zeros(count, bool)
    flags[np.linspace(0, count - 1, probes).astype(int)] = True
    return flags


def check(found: Corpus, texts: Sequence[Article], probes: int) -> None:
    """Print real and generated articles of equal numbers."""
    flags = held_out(len(found), probes)
    posted = with_texts([found[i] for i in np.flatnonzero(flags).tolist()], texts)
    order = np.random.default_rng(2).permutation(len(found))
    for parts in (2, 1):
        for label, share in (("real", parts), ("generated", 2 * parts)):
            kept = np.sort(np.concatenate([np.flatnonzero(flags), order[: len(found) // share]]))
            kept = np.unique(kept)
            some = [found[i] for i in kept.tolist()]
            replicas = Replicas([analysis for _, analysis in some], flags[kept])
            count = len(np.flatnonzero(~flags[order[: len(found) // parts]]))
            asyncio.run(measure(some, replicas, posted, count, label, upkeep=False))


def with_texts(posted: Corpus, texts: Sequence[Article]) -> list[tuple[Article, Analysis]]:
    """The same with the texts."""
    by_id = {article.id: article for article in texts}
    return [(by_id[article.id], analysis) for article, analysis in posted]


def print_entries(replicas: Replicas, probes: Sequence[Analysis], sizes: Sequence[int]) -> None:
    """Print what look-ups read at each size, counted without a store."""
    for size in sizes:
        bits, own, read = reading.sketch_entries(replicas, size, probes)
        _, _, fixed = reading.sketch_entries(replicas, size, probes, rehash=False)
        blocks = reading.block_entries(replicas, size, probes, PLAN)
        print(
            f"{size:>12,} stored: sketch keys ({bits} bits) {_spread(read)} entries, "
            f"{read.mean() * SKETCH_POSTING_BYTES / 1000:.1f} kB, of them own {_spread(own)}; "
            f"with 18 bits {_spread(fixed)}; blocks {_spread(blocks)}",
            flush=True,
        )


def _spread(values: npt.NDArray[np.int64]) -> str:
    return f"{values.mean():,.0f} (p99 {np.percentile(values, 99):,.0f})"


def print_fit(sizes: Sequence[int], figures: Sequence[Figures]) -> None:
    """Print the fit of each cost, its errors, and its prediction."""
    for name in COSTS:
        if not all(name in measured for measured in figures):
            continue
        values = [measured[name] for measured in figures]
        a, b, c = fitted = fitting.fit(sizes, values)
        errors = " ".join(f"{error:+.0%}" for error in fitting.left_out_errors(sizes, values))
        print(
            f"{name:20} {a:10.3f} + {b:8.4f} log10 N + {c:8.4f} N/10^6   left out: {errors}   "
            f"at 10^8: {fitting.predict(fitted, PREDICTED):,.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", default="1e5,1e6,1e7", help="sizes, separated by commas")
    parser.add_argument("--probes", type=int, default=1200, help="real articles that are posted")
    parser.add_argument("--entries", action="store_true", help="only count the entries read, without a store")
    parser.add_argument("--no-upkeep", action="store_true", help="without snapshot, recovery and compaction")
    parser.add_argument("--all-records", type=float, default=1e6, help="largest size with all records")
    parser.add_argument("--overload", type=float, default=0.0, metavar="S", help="seconds of a row; 0: none")
    parser.add_argument("--limit", type=int, help="use so many real articles only")
    parser.add_argument("--check", action="store_true", help="compare generated with real articles")
    parser.add_argument(
        "--cache", type=Path, help="file of the analyses (default: in the temporary directory)"
    )
    args = parser.parse_args()
    texts = corpus.read_articles()[: args.limit]
    found = corpus.analyze(texts, args.cache)
    if args.check:
        check(found, texts, args.probes)
        return
    flags = held_out(len(found), args.probes + (bench_overload.POOL if args.overload else 0))
    posted = with_texts([found[i] for i in np.flatnonzero(flags).tolist()], texts)
    if args.overload:
        random.Random(7).shuffle(posted)
    posted, flood = posted[: args.probes], posted[args.probes :]
    replicas = Replicas([analysis for _, analysis in found], flags)
    sizes = [int(float(size)) for size in args.articles.split(",")]
    if args.entries:
        print_entries(replicas, [analysis for _, analysis in posted], sizes)
        return
    figures = []
    for size in sizes:
        everything = size <= args.all_records
        figures.append(
            asyncio.run(
                measure(
                    found,
                    replicas,
                    posted,
                    size,
                    "generated",
                    upkeep=not args.no_upkeep,
                    all_records=everything,
                    flood=flood,
                    overload_s=args.overload,
                )
            )
        )
    if len(sizes) > len(fitting.TERMS) - 1:  # two sizes fit both growths exactly
        print_fit(sizes, figures)


if __name__ == "__main__":
    main()
