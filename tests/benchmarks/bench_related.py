"""Latency of ``/related`` in a large index (``scripts/bench related [--articles 1e6] [--dir DIR]``).

Generated articles go through the transactions of the service (``Transactions.insert``) into an embedded
Valkey, in ``--segments`` segments: uniform fingerprints, one in ten within 4 to 7 bits of an earlier one, one
in twenty a copy of an earlier article, sketches of articles of about 400 words, and 24 terms each whose
frequencies follow Zipf's law. The vocabulary is so large that each indexed term of an article has its full
list of articles, as in an index of a million, at any size. ``--dir`` keeps the store, so that it is loaded
only once. Ten answers each:

    in process   ``RelatedArticles.of_id``, one random id after another, first and repeated; sequential store
                 reads per answer
    over HTTP    a service with one worker, with one caller and by id with ``--callers``: by id; a text of 400
                 words; histories of 20 ids, of which four are related each, and of random ones
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import aiohttp
import numpy as np
import uvloop

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import sample_size
from aggregator.domain import ArticleRecord, Match, Outcome, Sketch, article_number_at
from aggregator.events.repository import EventRepository
from aggregator.index import Index, keys
from aggregator.index.upkeep import format_version
from aggregator.queries.related import RelatedArticles
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import RedisStore, open_redis_store
from aggregator.time_units import wall_clock_ms
from tests.benchmarks.bench_service import running_service

SHINGLES, TERMS = 320, 24
SAMPLE = sample_size(SHINGLES)
COMMIT_ARTICLES = 500
DAY_MS = 86_400_000
LETTERS = str.maketrans("0123456789", "bcdfghjklm")  # without vowels a word is its own stem


def word(rank: int) -> str:
    """The term of a rank."""
    return f"{rank:05}".translate(LETTERS)


def records(count: int, space: str, now_ms: int) -> Iterator[tuple[ArticleRecord, Outcome]]:
    """Generated articles of the last eight weeks, oldest first, with their outcomes."""
    rng = np.random.default_rng(5)
    spread = 56 * DAY_MS / count
    vocabulary = max(1_000, count // 16)
    weights = np.sort(rng.random((1000, TERMS)) ** 2 + 0.05)[:, ::-1]
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    earlier: list[int] = []
    before: ArticleRecord | None = None
    for position in range(count):
        fingerprint = int(rng.integers(0, 2**64, dtype=np.uint64))
        if position % 10 == 9:
            bits = rng.choice(64, int(rng.integers(4, 8)), replace=False).tolist()
            fingerprint = earlier[int(rng.integers(len(earlier)))] ^ sum(1 << bit for bit in bits)
        earlier.append(fingerprint)
        # Ranks by Zipf's law, the rarest first, since rare terms weigh most.
        ranks = np.unique((vocabulary ** rng.random(TERMS * 2)).astype(int))[::-1][:TERMS].tolist()
        number = article_number_at(now_ms - int((count - position) * spread), position % 1024)
        record = ArticleRecord(
            number=number, first_version=number, id=f"https://news.example/{position:08d}",
            space=space, lang="en", fingerprint=fingerprint, text_hash=rng.bytes(16), short=False,
            title=f"A headline of some length about topic {position}", url=f"https://news.example/{position:08d}",
            source=f"paper{position % 40}.example", published_at_ms=number >> 22,
            sketch=Sketch(
                SHINGLES,
                np.sort(rng.integers(0, 2**31, SAMPLE).astype(np.uint32)),
                np.zeros(SAMPLE, np.uint8),
            ),
            terms=tuple(zip(map(word, ranks), weights[position % 1000].tolist(), strict=False)),
            figures=(position, position + 1), minor_terms=rng.bytes(38),
        )  # fmt: skip
        outcome = Outcome("new")
        if before is not None and position % 20 == 19:  # a copy of the previous article, which is not a copy
            id_, first = before.id, before.number
            outcome = Outcome("duplicate", 2, Match(id_, first, id_, first, 2, 0.9, "hamming"))
        before = record
        yield record, outcome


async def load(index: Index, space: str, count: int, segments: int) -> None:
    """Store ``count`` generated articles; a segment is sealed when it has ``count / segments`` of them."""
    now_ms, started = wall_clock_ms(), time.perf_counter()
    chunk: list[tuple[ArticleRecord, Outcome]] = []
    for position, row in enumerate(records(count, space, now_ms), 1):
        chunk.append(row)
        if len(chunk) == COMMIT_ARTICLES or position == count:
            await _write(index, space, chunk)
            chunk = []
        if position < count and position * segments // count > (position - 1) * segments // count:
            await _write(index, space, chunk)
            chunk = []
            layers = await index.segments.stack(space)
            await index.segments.seal(space, layers.last, now_ms)
        if position % 50_000 == 0:
            print(
                f"  {position:,} loaded, {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True
            )


async def _write(index: Index, space: str, chunk: Sequence[tuple[ArticleRecord, Outcome]]) -> None:
    if not chunk:
        return
    snapshot = await index.segments.read({space: ()})
    segment = index.transactions(snapshot.stacks[space])
    await index.records.insert([record for record, _ in chunk], {})
    failed = await index.store.commit_many([segment.insert(r, outcome, []) for r, outcome in chunk])
    assert not any(failed)
    # Otherwise the detector would read all articles during the measurement.
    await index.store.delete([tag + keys.STREAM for tag in snapshot.stacks[space].tags])


async def measure_requests(
    name: str, ids: Sequence[str], request: Callable[[str], Awaitable[int]], callers: int = 1
) -> None:
    """Request every id once, from ``callers`` concurrent callers; print latencies."""
    waiting, taken, found, cpu_s = iter(ids), [], [], time.process_time()

    async def caller() -> None:
        for id_ in waiting:
            started = time.perf_counter()
            found.append(await request(id_))
            taken.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*(caller() for _ in range(callers)))
    p50, p99 = np.percentile(taken, [50, 99])
    print(
        f"{name:42} p50 {p50:6.2f}  p99 {p99:6.2f}  largest {max(taken):6.1f} ms  "
        f"{np.mean(found):4.1f} neighbors  "
        f"CPU of the caller {(time.process_time() - cpu_s) * 1000 / len(taken):.2f} ms",
        flush=True,
    )


class CountingStore:
    """Counts the reads that pass through to a store."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self.reads = 0

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Same as ``RedisStore.read``."""
        self.reads += 1
        return await self._store.read(keys)


async def measure(url: str, space: str, spaces: Sequence[str], args: argparse.Namespace) -> None:
    """Measure in process, then over HTTP."""
    count, rng = int(args.articles), np.random.default_rng(6)
    ids = [
        f"https://news.example/{position:08d}"
        for position in rng.choice(count, args.questions, replace=False)
    ]
    store = open_redis_store(url)
    counting = CountingStore(store)
    index = Index(counting, spaces, retention_ms=90 * DAY_MS)  # type: ignore[arg-type]

    async def no_analyses(_: object) -> list[object]:
        return []

    related = RelatedArticles(
        index,
        no_analyses,  # type: ignore[arg-type]
        clock=wall_clock_ms,
        members_of_event=EventRepository(counting).event_article_ids,  # type: ignore[arg-type]
    )

    async def of_id(id_: str) -> int:
        return len(await related.of_id(id_))

    for name in ("in process, first", "in process, repeated"):
        counting.reads = 0
        await measure_requests(name, ids, of_id)
        print(f"{'':42} {counting.reads / len(ids):.1f} store reads per request")
    await store.close()
    async with running_service("--store-url", url) as running, aiohttp.ClientSession() as session:

        async def over_http(id_: str) -> int:
            async with session.get(
                f"{running.url}/v1/articles/{id_.replace('/', '%2F')}/related"
            ) as response:
                assert response.status == 200, await response.text()
                related = (await response.json())["related"]
                found[id_] = [id_, *(item["id"] for item in related[:3])]
                return len(related)

        async def post(body: dict[str, object]) -> int:
            async with session.post(f"{running.url}/v1/related", json=body) as response:
                assert response.status == 200, await response.text()
                return len((await response.json())["related"])

        async def by_text(_: str) -> int:
            ranks = max(1_000, count // 16) ** rng.random(400)
            return await post({"lang": "en", "text": " ".join(word(int(rank)) for rank in ranks)})

        async def of_subjects(_: str) -> int:
            read = [id_ for seed in rng.choice(ids, 20) for id_ in found[str(seed)]][:20]
            return await post({"ids": list(dict.fromkeys(read))})

        async def of_random(_: str) -> int:
            return await post({"ids": rng.choice(ids, 20, replace=False).tolist()})

        found: dict[str, list[str]] = {}
        await measure_requests("over HTTP, one caller, first", ids, over_http)
        await measure_requests("over HTTP, one caller, repeated", ids, over_http)
        await measure_requests("over HTTP, one caller, text", ids, by_text)
        await measure_requests("over HTTP, one caller, history of 20", ids, of_subjects)
        await measure_requests("over HTTP, one caller, 20 random ids", ids, of_random)
        await measure_requests(
            f"over HTTP, {args.callers} callers, repeated", ids * 2, over_http, args.callers
        )


async def run(directory: Path, args: argparse.Namespace) -> None:
    """Load the store unless it is loaded, and measure."""
    spaces = Analyzer(load_models()).spaces
    space = next(name for name in spaces if name.startswith("en."))
    done, shape = directory / "loaded.json", [int(args.articles), args.segments, space]
    with EmbeddedServer(directory) as server:
        if not done.exists():
            store = open_redis_store(server.url)
            await format_version.write(store)  # before any record, or the service refuses the data
            started = time.perf_counter()
            await load(
                Index(store, spaces, retention_ms=90 * DAY_MS), space, int(args.articles), args.segments
            )
            info = await store.info()
            await store.close()
            done.write_text(json.dumps(shape))
            print(
                f"{int(args.articles):,} articles in {args.segments} segments loaded in "
                f"{time.perf_counter() - started:.0f} s, {info.memory_bytes / args.articles:,.0f} bytes each"
            )
        if json.loads(done.read_text()) != shape:
            sys.exit(f"{directory} holds another index ({done.read_text()}); use another --dir.")
        await measure(server.url, space, spaces, args)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=float, default=1e6)
    parser.add_argument(
        "--segments", type=int, default=4, help="with the default settings there would be one"
    )
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--dir", help="keep the store here, and load it only when it is empty")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = args.dir or stack.enter_context(tempfile.TemporaryDirectory())
        Path(directory).mkdir(parents=True, exist_ok=True)
        uvloop.run(run(Path(directory), args))


if __name__ == "__main__":
    main()
