"""Memory of the store per article, in total and per kind of key.

    python -m tests.benchmarks.bench_memory [FILE ...] [--articles 14000] [--fingerprints-only] [--at 1000000]

Real articles (default: allsides_dev) go through the ingest of the service into an embedded server (or an
empty one at ``--store``). Prints the growth of the server's used_memory per article, and MEMORY USAGE per
kind of key, extrapolated from a sample of keys. Sparse buckets cost one key each, so the figure falls as the
index fills: ``--at 1000000`` adds the cost of buckets per article in an index of that size, growing and
compacted. For that, 1/16 of the bucket keys are generated with the sizes that they would have there; terms
are assumed to co-occur by chance only, which is the most expensive case.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import redis

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import MAX_SKETCH_KEYS
from aggregator.app import build_core
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator.index import Index, keys
from aggregator.index.blocks import DEFAULT_PLAN
from aggregator.index.codec.postings import NUMBER_BYTES, SKETCH_REMAINDER_BYTES, TERM_REMAINDER_BYTES
from aggregator.index.sketch_rehash import SPLIT_ENTRIES
from aggregator.index.term_index import INDEXED_TERMS, MAX_ARTICLES_PER_TERM
from aggregator.offline.jsonl import read_rows
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import wall_clock_ms
from tests.support.development_data import DATA
from tests.support.factories import in_process

RETENTION_MS = 90 * 86_400_000
SAMPLE = 2000
SIMULATED_SHARE = 16  # one in this many bucket keys is generated
KINDS = {
    "b": "fingerprint buckets", "s": "sketch buckets", "t": "term buckets", "i": "id bindings",
    "p": "pointers", "c": "copies", "r": "records",
}  # fmt: skip


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        url = options.store or stack.enter_context(EmbeddedServer(Path(directory))).url
        client = redis.Redis.from_url(url)
        before = client.info("memory")["used_memory"]
        count = asyncio.run(_fill(url, options.files, options.articles, options.fingerprints_only))
        used = client.info("memory")["used_memory"] - before
        print(f"{count} articles, {used / count:,.0f} bytes each")
        for kind, (number, size) in sorted(_by_kind(client).items(), key=lambda item: -item[1][1]):
            print(f"  {kind:20} {number / count:6.2f} keys  {size / count:6.0f} bytes")
        if options.at:
            without_buckets = (
                sum(size for kind, (_, size) in _by_kind(client).items() if "buckets" not in kind) / count
            )
            for state in ("growing", "compacted"):
                # A new server: an emptied one frees its hash tables only gradually.
                empty = stack.enter_context(EmbeddedServer(Path(directory) / state))
                fresh = redis.Redis.from_url(empty.url)
                in_buckets = _bucket_bytes(fresh, options.at, state == "growing", options.fingerprints_only)
                print(
                    f"at {options.at:,}, {state}: {without_buckets:,.0f} outside of buckets "
                    f"+ {in_buckets:,.0f} in buckets"
                )


def _bucket_bytes(client: redis.Redis, articles: int, growing: bool, fingerprints_only: bool) -> float:
    """Bytes per article in the buckets of an index of ``articles`` articles."""
    kinds = [("b", 4 << 16, 4, articles, DEFAULT_PLAN.remainder_bytes)]
    if not fingerprints_only:
        sketch_buckets = 1 << keys.SKETCH_BUCKET_BITS
        while articles * MAX_SKETCH_KEYS > SPLIT_ENTRIES * sketch_buckets:
            sketch_buckets *= 2
        kinds.append(("s21:", sketch_buckets, MAX_SKETCH_KEYS, articles, SKETCH_REMAINDER_BYTES))
        kinds.append(
            ("t", 1 << keys.TERM_BUCKET_BITS, INDEXED_TERMS, MAX_ARTICLES_PER_TERM, TERM_REMAINDER_BYTES)
        )
    before = client.info("memory")["used_memory"]
    rng, pipeline = np.random.default_rng(0), client.pipeline(transaction=False)
    for name, keys_in_all, entries_per_article, limit, rest_bytes in kinds:
        mean_entries = articles * entries_per_article / keys_in_all
        sizes = rng.poisson(mean_entries, keys_in_all // SIMULATED_SHARE).tolist()
        for number, size in enumerate(sizes):
            entries = min(size, limit)
            for count in _appends(entries) if growing else [entries] if entries else []:
                pipeline.append(
                    f"{{en.3f2a.0}}{name}{number:05x}", bytes(count * (rest_bytes + NUMBER_BYTES))
                )
            if len(pipeline) > 5_000:
                pipeline.execute()
    pipeline.execute()
    return float(client.info("memory")["used_memory"] - before) * SIMULATED_SHARE / articles


def _appends(entries: int) -> Iterator[int]:
    """Sizes of the fewest appends that reserve as much memory as ``entries`` single ones.

    The server doubles the allocation of a string that grows.
    """
    done, reserved = 0, 0
    while done < entries:
        step = 1 if done < 2 else min(entries, reserved + 1) - done
        done += step
        if done > reserved:
            reserved = 2 * done if done > 1 else 1
        yield step


async def _fill(url: str, files: Sequence[str], limit: int, fingerprints_only: bool) -> int:
    analyzer = Analyzer(load_models())
    store = open_redis_store(url)
    index = Index(store, analyzer.spaces, retention_ms=RETENTION_MS)
    ingest = build_core(
        index,
        in_process(analyzer),
        Policy(name="hamming" if fingerprints_only else "verified"),
        clock=wall_clock_ms,
        fingerprints_only=fingerprints_only,
    ).ingest
    articles = [
        Article(
            id=row["id"], title=row.get("title") or "", text=row.get("text") or "", url=row.get("url") or "",
            source=row.get("source") or "", lang=row.get("lang"),
        )
        for row in itertools.islice(read_rows(list(files)), limit)
    ]  # fmt: skip
    await ingest.submit_many(articles)
    await store.close()
    return len(articles)


def _by_kind(client: redis.Redis) -> dict[str, tuple[int, float]]:
    """Per kind of key: number of keys, and their bytes extrapolated from a sample."""
    found: dict[str, list[bytes]] = defaultdict(list)
    for key in client.scan_iter(count=10_000):
        rest = key[key.index(b"}") + 1 :] if key.startswith(b"{") else key
        found[KINDS.get(rest[:1].decode("latin-1"), "others")].append(key)
    rng = random.Random(0)
    sizes = {}
    for kind, names in found.items():
        sample = rng.sample(names, min(SAMPLE, len(names)))
        mean = sum(client.memory_usage(key) or 0 for key in sample) / len(sample)
        sizes[kind] = (len(names), mean * len(names))
    return sizes


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE", default=[str(DATA / "allsides_dev.jsonl.gz")])
    parser.add_argument("--articles", type=int, default=14_000)
    parser.add_argument("--store", help="a redis:// URL of an empty server (default: an embedded one)")
    parser.add_argument("--fingerprints-only", action="store_true", help="as the setting of the same name")
    parser.add_argument(
        "--at", type=int, default=0, metavar="N", help="extrapolate to an index of N articles"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
