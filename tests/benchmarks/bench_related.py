"""How soon is "what else is about this?" answered in a large index? ``scripts/bench related [--articles 1e6] [--dir DIR]``

Made articles go through the transactions of the service (``Segment.insert``) into an embedded Valkey, in ``--segments``
segments: uniform fingerprints, every tenth within 4 to 7 bits of an earlier one, every twentieth a copy of an earlier
one, samples of articles of some 400 words, 24 terms each whose frequencies follow Zipf's law, of a vocabulary so large that
the terms an article stands under have their full list of articles, as in an index of a million, whatever the size.
``--dir`` keeps the store, so that it is loaded once. Asked for ten neighbours each, of random ids:

    in process   ``Related.of_id`` one by one, for the first time and again; reads of the store per answer, one after another
    over HTTP    GET /v1/articles/{id}/related of a service with one worker, one caller and then ``--callers``
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
from aggregator.queries.related import RelatedArticles
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import RedisStore, open_redis_store
from tests.benchmarks.bench_service import own_service

SHINGLES, TERMS = 320, 24
TOGETHER = 500
DAY_MS = 86_400_000


def records(count: int, space: str, now_ms: int) -> Iterator[tuple[ArticleRecord, Outcome]]:
    """Articles of the last eight weeks, oldest first, with what was decided."""
    rng = np.random.default_rng(5)
    spread = 56 * DAY_MS / count
    vocabulary = max(1_000, count // 16)
    weights = np.sort(rng.random((1000, TERMS)) ** 2 + 0.05)[:, ::-1]
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    earlier: list[int] = []
    before: ArticleRecord | None = None
    for place in range(count):
        fingerprint = int(rng.integers(0, 2**64, dtype=np.uint64))
        if place % 10 == 9:
            bits = rng.choice(64, int(rng.integers(4, 8)), replace=False).tolist()
            fingerprint = earlier[int(rng.integers(len(earlier)))] ^ sum(1 << bit for bit in bits)
        earlier.append(fingerprint)
        # Rare terms weigh most: ranks by Zipf's law, the rarest first.
        ranks = np.unique((vocabulary ** rng.random(TERMS * 2)).astype(int))[::-1][:TERMS].tolist()
        number = article_number_at(now_ms - int((count - place) * spread), place % 1024)
        record = ArticleRecord(
            number=number, first_version=number, id=f"https://news.example/{place:08d}", space=space, lang="en",
            fingerprint=fingerprint, text_hash=rng.bytes(16), short=False,
            title=f"A headline of some length about matter {place}", url=f"https://news.example/{place:08d}",
            source=f"paper{place % 40}.example", published_at_ms=number >> 22,
            sketch=Sketch(SHINGLES, np.sort(rng.integers(0, 2**31, sample_size(SHINGLES)).astype(np.uint32))),
            terms=tuple(zip((f"term{rank}" for rank in ranks), weights[place % 1000].tolist(), strict=False)),
            figures=(place, place + 1),
        )  # fmt: skip
        outcome = Outcome("new")
        if before is not None and place % 20 == 19:  # of the one before it, which was not a copy itself
            id_, first = before.id, before.number
            outcome = Outcome("duplicate", 2, Match(id_, first, id_, first, 2, 0.9, "hamming"))
        before = record
        yield record, outcome


async def load(index: Index, space: str, count: int, segments: int) -> None:
    """All of them; a segment is sealed when it has its share."""
    now_ms, started = time.time_ns() // 1_000_000, time.perf_counter()
    chunk: list[tuple[ArticleRecord, Outcome]] = []
    for place, one in enumerate(records(count, space, now_ms), 1):
        chunk.append(one)
        if len(chunk) == TOGETHER or place == count:
            await _write(index, space, chunk)
            chunk = []
        if place < count and place * segments // count > (place - 1) * segments // count:
            await _write(index, space, chunk)
            chunk = []
            layers = await index.segments.stack(space)
            await index.segments.seal(space, layers.last, now_ms)
        if place % 50_000 == 0:
            print(f"  {place:,} loaded, {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


async def _write(index: Index, space: str, chunk: Sequence[tuple[ArticleRecord, Outcome]]) -> None:
    if not chunk:
        return
    snapshot = await index.segments.read({space: ()})
    segment = index.transactions(snapshot, space)
    await index.put_records([record for record, _ in chunk], {})
    failed = await index.store.commit_many([segment.insert(r, outcome, []) for r, outcome in chunk])
    assert not any(failed)
    # A detector that catches up with all of them is not what is measured.
    await index.store.delete([keys.stream(tag) for tag in snapshot.stacks[space].tags])


async def asked(
    name: str, ids: Sequence[str], answer: Callable[[str], Awaitable[int]], callers: int = 1
) -> None:
    """Every id once, by so many callers; prints times as a caller sees them and what they got."""
    waiting, taken, found, cpu_s = iter(ids), [], [], time.process_time()

    async def caller() -> None:
        for id_ in waiting:
            started = time.perf_counter()
            found.append(await answer(id_))
            taken.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*(caller() for _ in range(callers)))
    p50, p99 = np.percentile(taken, [50, 99])
    print(
        f"{name:42} p50 {p50:6.2f}  p99 {p99:6.2f}  largest {max(taken):6.1f} ms  {np.mean(found):4.1f} neighbours"
        f"  CPU of the asker {(time.process_time() - cpu_s) * 1000 / len(taken):.2f} ms",
        flush=True,
    )


class CountingStore:
    """Counts the reads that pass through to a store."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self.reads = 0

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """As the store."""
        self.reads += 1
        return await self._store.read(keys)


async def measure(url: str, space: str, spaces: Sequence[str], args: argparse.Namespace) -> None:
    """In process, then through a service."""
    count, rng = int(args.articles), np.random.default_rng(6)
    ids = [f"https://news.example/{place:08d}" for place in rng.choice(count, args.questions, replace=False)]
    store = open_redis_store(url)
    counting = CountingStore(store)
    index = Index(counting, spaces, retention_ms=90 * DAY_MS)  # type: ignore[arg-type]

    async def nothing(_: object) -> list[object]:
        return []

    related = RelatedArticles(
        index,
        nothing,  # type: ignore[arg-type]
        clock=lambda: time.time_ns() // 1_000_000,
        members_of_event=EventRepository(counting).event_article_ids,  # type: ignore[arg-type]
    )

    async def of_id(id_: str) -> int:
        return len(await related.of_id(id_))

    for name in ("in process, the first time", "in process, again"):
        counting.reads = 0
        await asked(name, ids, of_id)
        print(f"{'':42} {counting.reads / len(ids):.1f} reads of the store each")
    await store.close()
    async with own_service("--store-url", url) as running, aiohttp.ClientSession() as session:

        async def over_http(id_: str) -> int:
            async with session.get(f"{running.url}/v1/articles/{id_.replace('/', '%2F')}/related") as answer:
                assert answer.status == 200, await answer.text()
                return len((await answer.json())["related"])

        await asked("over HTTP, one caller, the first time", ids, over_http)
        await asked("over HTTP, one caller, again", ids, over_http)
        await asked(f"over HTTP, {args.callers} callers, again", ids * 2, over_http, args.callers)


async def run(directory: Path, args: argparse.Namespace) -> None:
    """Load what is not there, and measure."""
    spaces = Analyzer(load_models()).spaces
    space = next(name for name in spaces if name.startswith("en."))
    done, shape = directory / "loaded.json", [int(args.articles), args.segments, space]
    with EmbeddedServer(directory) as server:
        if not done.exists():
            store = open_redis_store(server.url)
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
            sys.exit(f"{directory} holds another index: {done.read_text()}; give another --dir.")
        await measure(server.url, space, spaces, args)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=float, default=1e6)
    parser.add_argument("--segments", type=int, default=4, help="the default setting would make it one")
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
