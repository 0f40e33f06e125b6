"""How much does the store hold per article, and in what?

    python tests/benchmarks/bench_memory.py [FILE ...] [--articles 14000] [--fingerprints-only] [--store redis://...]

Real articles (default: allsides_dev) go through the service's own ingest into an embedded server (or an empty one
at ``--store``). Printed: the server's used_memory per article, all in, and per kind of key what MEMORY USAGE says
of a sample of keys. Sparse buckets cost a key each, so the figure falls as the index fills.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import redis

from aggregator.analyse import Analyser
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.ingest import Ingest
from aggregator.models import load_models
from aggregator.reading import rows
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_store
from aggregator.verdict import Policy

RETENTION_MS = 90 * 86_400_000
SAMPLE = 2000
KINDS = {
    "b": "fingerprint buckets", "s": "band buckets", "t": "topic buckets", "i": "id bindings",
    "p": "states", "c": "copies", "r": "records",
}  # fmt: skip


def main() -> None:
    """Run and print."""
    options = _options()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        url = options.store or stack.enter_context(EmbeddedServer(Path(directory))).url
        client = redis.Redis.from_url(url)
        before = client.info("memory")["used_memory"]
        count = asyncio.run(_fill(url, options.files, options.articles, options.fingerprints_only))
        used = client.info("memory")["used_memory"] - before
        print(f"{count} articles, {used / count:,.0f} bytes each")
        for kind, (keys, size) in sorted(_by_kind(client).items(), key=lambda item: -item[1][1]):
            print(f"  {kind:20} {keys / count:6.2f} keys  {size / count:6.0f} bytes")


async def _fill(url: str, files: Sequence[str], most: int, fingerprints_only: bool) -> int:
    analyser = Analyser(load_models())

    async def analyse_many(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return analyser.analyse_many(articles)

    store = open_store(url)
    index = Index(store, analyser.spaces, retention_ms=RETENTION_MS)
    ingest = Ingest(
        index,
        analyse_many,
        Policy(name="hamming" if fingerprints_only else "verified"),
        clock=lambda: time.time_ns() // 1_000_000,
        fingerprints_only=fingerprints_only,
    )
    articles = [
        Article(
            id=row["id"], title=row.get("title") or "", text=row.get("text") or "", url=row.get("url") or "",
            source=row.get("source") or "", lang=row.get("lang"),
        )
        for row in itertools.islice(rows(list(files)), most)
    ]  # fmt: skip
    await ingest.submit_many(articles)
    await store.close()
    return len(articles)


def _by_kind(client: redis.Redis) -> dict[str, tuple[int, float]]:
    """Per kind of key how many there are, and their bytes by a sample."""
    found: dict[str, list[bytes]] = defaultdict(list)
    for key in client.scan_iter(count=10_000):
        rest = key[key.index(b"}") + 1 :] if key.startswith(b"{") else key
        found[KINDS.get(rest[:1].decode("latin-1"), "others")].append(key)
    rng = random.Random(0)
    sizes = {}
    for kind, keys in found.items():
        some = rng.sample(keys, min(SAMPLE, len(keys)))
        mean = sum(client.memory_usage(key) or 0 for key in some) / len(some)
        sizes[kind] = (len(keys), mean * len(keys))
    return sizes


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path(os.environ.get("AGGREGATOR_DATA", "../shared/data"))
    parser.add_argument("files", nargs="*", metavar="FILE", default=[str(data / "allsides_dev.jsonl.gz")])
    parser.add_argument("--articles", type=int, default=14_000)
    parser.add_argument(
        "--store", help="a redis:// URL of an empty server (default: an embedded one of its own)"
    )
    parser.add_argument("--fingerprints-only", action="store_true", help="as the setting of this name")
    return parser.parse_args()


if __name__ == "__main__":
    main()
