"""Entries that a look-up reads through sketch keys, by the number of stored articles.

    scripts/bench keys [--articles 40000] [--sizes 1e4,1e5,1e6,1e7] [--cache FILE] [--rehash N]

Real articles of all sources (development data), interleaved, each file in its order. Their sketch buckets are
filled as inserts fill them, without a store: an article is looked up (16 keys), then stored (8 keys; exact
copies add none). Prints, for the look-ups up to each size, with unbounded keys and with those that the index
keeps (``index/sketch_buckets.py``):

    own          entries of the article's own keys: mean, p99, maximum; largest key
    collisions   entries of other keys that have the same bucket (18 bits): mean
    full         share of the 16 keys that are full, and of the entries that these hold

then, per source, how many of the keys of an article (8) are full, and the articles all of whose keys are.

``--sizes``: synthetic key counts of an index of that many articles: keys that several real articles have are
drawn as often as among these, all others are keys of single articles with the upper bits of real ones.
Buckets are named by 18 bits, and by as many as a rehash leaves (``index/sketch_rehash.py``). ``own`` is a
lower estimate where the real articles are few; the bound that is printed last holds whatever is stored.

``--rehash N``: fills a server directly with the sketch postings of N articles (8 uniform keys of 26 bits
each), rehashes them, and prints what look-ups read, memory, and the cost of the moves.
"""

from __future__ import annotations

import argparse
import asyncio
import pickle
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import redis

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import MAX_QUERY_KEYS, MAX_SKETCH_KEYS, query_keys, sketch_keys
from aggregator.domain import Analysis, Article
from aggregator.index import Index, keys
from aggregator.index.codec.postings import SKETCH_POSTING_BYTES, encode_sketch_postings
from aggregator.index.keys import MAX_SKETCH_BUCKET_BITS, SKETCH_BUCKET_BITS
from aggregator.index.sketch_buckets import FULL_KEY_ENTRIES, KEPT_KEY_ENTRIES
from aggregator.index.sketch_rehash import SPLIT_ENTRIES, SketchRehash
from aggregator.offline.jsonl import read_rows
from aggregator.store.base import AppendMany, Transaction
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from tests.support.development_data import DATA
from tests.support.processes import server_cpu_s

SOURCES = (
    "allsides_dev",
    "reuters21578_dev",
    "spotsigs_dev",
    "yahoo_finance_dev",
    "ecbplus_dev",
    "lee_background300_dev",
    "ru_telegram_dev",
    "xinwenlianbo_dev",
)
MAX_CHARACTERS = 20_000
WINDOW = 1000  # look-ups that a line describes
_BUCKET_MASK = (1 << SKETCH_BUCKET_BITS) - 1


class Row(NamedTuple):
    """What the benchmark needs of an article: its source file, space, keys and text hash."""

    source: str
    space: str
    stored: tuple[int, ...]
    queried: tuple[int, ...]
    text_hash: bytes


class Keys:
    """Sketch keys of one index: the number of entries of each key and bucket."""

    def __init__(self, *, bounded: bool) -> None:
        self.entries: Counter[int] = Counter()
        self.by_bucket: Counter[int] = Counter()
        self._bounded = bounded

    def add(self, stored: Sequence[int]) -> None:
        """Append an article's entries, after trimming its full keys."""
        for key in stored:
            if self._bounded and self.entries[key] >= FULL_KEY_ENTRIES:
                self.by_bucket[key & _BUCKET_MASK] -= self.entries[key] - KEPT_KEY_ENTRIES
                self.entries[key] = KEPT_KEY_ENTRIES
            self.entries[key] += 1
            self.by_bucket[key & _BUCKET_MASK] += 1

    def read(self, queried: Sequence[int]) -> tuple[int, int]:
        """Entries that a look-up reads: those of the keys it looks for, and others in the same buckets."""
        own = sum(self.entries[key] for key in queried)
        return own, sum(self.by_bucket[key & _BUCKET_MASK] for key in queried) - own


def load(articles: int, cache: Path | None) -> list[Row]:
    """Analyzed articles of all sources, interleaved."""
    if cache is not None and cache.exists():
        loaded: list[Row] = pickle.loads(cache.read_bytes())
        return loaded[:articles]
    found: list[tuple[float, str, Article]] = []
    for source in SOURCES:
        rows = [row for row in read_rows([str(DATA / f"{source}.jsonl.gz")]) if row.get("text")]
        for i, row in enumerate(rows):
            lang = row.get("lang") if row.get("lang") in ("ru", "zh") else None
            text = row["text"][:MAX_CHARACTERS]
            article = Article(id=f"{source}:{row['id']}", title=row.get("title") or "", text=text, lang=lang)
            found.append((i / len(rows), source, article))
    found.sort(key=lambda item: item[0])
    analyzed = Analyzer(load_models()).analyze_many([article for *_, article in found[:articles]])
    result = [
        Row(source, a.space, sketch_keys(a.sketch), query_keys(a.sketch), a.text_hash)
        for (_, source, _), a in zip(found, analyzed, strict=False)
        if isinstance(a, Analysis)
    ]
    if cache is not None:
        cache.write_bytes(pickle.dumps(result))
    return result


def measure(rows: Sequence[Row]) -> None:
    """Print how the entries that are read grow, with unbounded and bounded keys."""
    marks = [n for n in (5_000, 10_000, 20_000, 40_000) if n < len(rows)] + [len(rows)]
    for bounded in (False, True):
        indexes: dict[str, Keys] = {}
        known: set[tuple[str, bytes]] = set()
        reads: list[tuple[int, int]] = []
        print("bounded" if bounded else "unbounded")
        for i, row in enumerate(rows, 1):
            index = indexes.setdefault(row.space, Keys(bounded=bounded))
            reads.append(index.read(row.queried))
            if (row.space, row.text_hash) not in known:
                known.add((row.space, row.text_hash))
                index.add(row.stored)
            if i in marks:
                own, others = np.array(reads[-WINDOW:]).T
                largest = max(max(index.entries.values()) for index in indexes.values())
                print(
                    f"  {i:7,} stored: own {_spread(own)}, largest key {largest:,}; "
                    f"collisions {others.mean():.1f}; {_full(rows[i - WINDOW : i], indexes)}",
                    flush=True,
                )
        _print_sources(rows, indexes)


def _spread(values: npt.NDArray[np.int64]) -> str:
    return f"{values.mean():.0f} (p99 {np.percentile(values, 99):.0f}, max {values.max()})"


def _full(rows: Sequence[Row], indexes: dict[str, Keys]) -> str:
    counts = np.array(
        [indexes[row.space].entries[key] for row in rows for key in row.queried], dtype=np.int64
    )
    full = counts >= KEPT_KEY_ENTRIES
    return f"full {full.mean():.1%} of keys, {counts[full].sum() / max(1, counts.sum()):.0%} of entries"


def _print_sources(rows: Sequence[Row], indexes: dict[str, Keys]) -> None:
    """Per source: mean number of stored keys that are full, and articles all of whose keys are."""
    for source in dict.fromkeys(row.source for row in rows):
        own = [row for row in rows if row.source == source and row.stored]
        full = [sum(indexes[row.space].entries[key] >= KEPT_KEY_ENTRIES for key in row.stored) for row in own]
        all_full = sum(f == len(row.stored) for f, row in zip(full, own, strict=True))
        print(
            f"    {source}: {np.mean(full):.2f} of {MAX_SKETCH_KEYS} keys full; "
            f"all full in {all_full} of {len(own)}"
        )


def synthetic(rows: Sequence[Row], sizes: Sequence[int], seed: int = 1) -> None:
    """Print what a look-up reads in indexes of other sizes, of the largest space, and what buckets cost."""
    space = Counter(row.space for row in rows).most_common(1)[0][0]
    real = [row for row in rows if row.space == space]
    counts = Counter(key for row in real for key in row.stored)
    repeated = {key: count for key, count in counts.items() if count > 1}
    single = np.array([key for key, count in counts.items() if count == 1], np.int64)
    rng = np.random.default_rng(seed)
    lookups = real[-WINDOW:]
    for size in sizes:
        scale = size / len(real)
        # As often as among the real articles; singles in the same proportion.
        per_key = {
            key: min(int(rng.poisson(count * scale)), FULL_KEY_ENTRIES) for key, count in repeated.items()
        }
        entries = sum(per_key.values()) + len(single) * scale
        bits = SKETCH_BUCKET_BITS
        while entries > SPLIT_ENTRIES << bits and bits < MAX_SKETCH_BUCKET_BITS:
            bits += 1
        own = np.array([sum(per_key.get(key, 0) for key in row.queried) for row in lookups])
        for width in sorted({SKETCH_BUCKET_BITS, bits}):
            buckets = _bucket_sizes(per_key, single, scale, width, rng)
            mask = (1 << width) - 1
            both = np.array([sum(int(buckets[key & mask]) for key in row.queried) for row in lookups])
            print(
                f"{size:>12,} stored (synthetic, {space}), {width} bits: own {_spread(own)}; "
                f"others {_spread(both - own)}; all {_spread(both)}, "
                f"{both.mean() * SKETCH_POSTING_BYTES:,.0f} bytes; "
                f"{entries / size:.1f} entries, {np.count_nonzero(buckets) / size:.2f} buckets per article",
                flush=True,
            )
    print(f"own entries are at most {MAX_QUERY_KEYS * FULL_KEY_ENTRIES} per look-up and segment")


def _bucket_sizes(
    per_key: Mapping[int, int],
    single: npt.NDArray[np.int64],
    scale: float,
    bits: int,
    rng: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Entries of each bucket of ``bits`` bits. Keys of one article have the upper bits of real ones."""
    upper = single >> SKETCH_BUCKET_BITS & (1 << bits - SKETCH_BUCKET_BITS) - 1
    shares = np.bincount(upper, minlength=1 << bits - SKETCH_BUCKET_BITS)
    sizes = np.concatenate(
        [
            rng.poisson(share * scale / (1 << SKETCH_BUCKET_BITS), 1 << SKETCH_BUCKET_BITS)
            for share in shares.tolist()
        ]
    )
    named = np.array(list(per_key), np.int64) & (1 << bits) - 1
    np.add.at(sizes, named, np.array(list(per_key.values())))
    return sizes


async def rehash(articles: int, directory: str) -> None:
    """Fill the sketch buckets of a server directly, rehash them, and print time, memory and what is read."""
    server = EmbeddedServer(Path(directory))
    with server, redis.Redis.from_url(server.url) as client:
        store = open_redis_store(server.url)
        index, space = Index(store, ["xx.0001"]), "xx.0001"
        tag, rng = keys.tag(space, 0), np.random.default_rng(1)
        for start in range(0, articles, 1000):
            drawn = rng.integers(0, 1 << 26, (min(1000, articles - start), MAX_SKETCH_KEYS))
            writes = [
                AppendMany(
                    tuple(keys.sketch_buckets(tag, own)),
                    tuple(encode_sketch_postings(own, start + i)),
                )
                for i, own in enumerate(drawn.tolist())
            ]
            await store.commit(Transaction((), tuple(writes)))
        lookups = rng.integers(0, 1 << 26, (WINDOW, MAX_QUERY_KEYS)).tolist()
        while True:
            width = (await index.segments.read({space: ()})).stacks[space].sketch_widths[0]
            found = await store.read(
                [key for own in lookups for key in keys.sketch_buckets(tag, own, width.bits)]
            )
            used = client.info("memory")["used_memory"]
            print(
                f"{articles:,} articles in a server, {width.bits} bits: "
                f"{sum(map(len, filter(None, found))) / SKETCH_POSTING_BYTES / WINDOW:.1f} entries read, "
                f"{client.dbsize() / articles:.2f} keys and {used / articles:.0f} bytes per article",
                flush=True,
            )
            job, started, server_s = (
                SketchRehash(store, index.segments),
                time.process_time(),
                server_cpu_s(client),
            )
            clock, longest_s = time.perf_counter(), 0.0
            async for _ in job.steps(space):
                longest_s, clock = max(longest_s, time.perf_counter() - clock), time.perf_counter()
            if not job.buckets_moved:
                break
            print(
                f"  {job.buckets_moved:,} buckets moved: CPU "
                f"{(time.process_time() - started) / job.buckets_moved * 1e6:.1f} us of the process and "
                f"{(server_cpu_s(client) - server_s) / job.buckets_moved * 1e6:.1f} us of the server each; "
                f"longest step {longest_s * 1000:.0f} ms",
                flush=True,
            )
        await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=40_000)
    parser.add_argument("--sizes", default="1e4,1e5,1e6,1e7")
    parser.add_argument("--rehash", metavar="N", help="only rehash a server that is filled with N articles")
    parser.add_argument("--cache", type=Path, help="file that keeps the analyzed articles")
    options = parser.parse_args()
    if options.rehash:
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(rehash(int(float(options.rehash)), directory))
        return
    rows = load(options.articles, options.cache)
    measure(rows)
    synthetic(rows, [int(float(size)) for size in options.sizes.split(",")])


if __name__ == "__main__":
    main()
