"""What the index of a given size costs: look-ups, check-and-insert over HTTP, reads, memory, upkeep."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import aiohttp
import numpy as np
import redis

from aggregator.domain import Analysis, Article
from aggregator.index import Index, keys
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import (
    NUMBER_BYTES,
    SKETCH_REMAINDER_BYTES,
    TERM_REMAINDER_BYTES,
    decode_numbers,
)
from aggregator.index.keys import term_hash
from aggregator.index.upkeep.compaction import Compactor
from aggregator.store.redis import open_redis_store
from aggregator.time_units import DAY_MS
from tests.benchmarks.bench_service import running_service
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import server_cpu_s

CALLERS = 8
WARM_UP = 200
UNLIMITED = 10**9  # articles per segment: the measured one stays writable
Figures = dict[str, float]


async def read_sizes(
    url: str, spaces: Sequence[str], space: str, probes: Sequence[tuple[Article, Analysis]]
) -> tuple[Figures, set[int]]:
    """Entries and bytes that one look-up reads per kind of bucket; numbers of all records it compares."""
    store = open_redis_store(url, socket_timeout_s=HANG_LIMIT_S)
    index = Index(store, spaces, retention_ms=90 * DAY_MS, segment_max_articles=UNLIMITED)
    entry_bytes = {
        "block": PLAN.remainder_bytes + NUMBER_BYTES,
        "sketch": SKETCH_REMAINDER_BYTES + NUMBER_BYTES,
        "term": TERM_REMAINDER_BYTES + NUMBER_BYTES,
    }
    read: dict[str, list[int]] = {"block": [], "sketch": [], "term": [], "candidate": [], "near": []}
    candidates: set[int] = set()
    for article, analysis in probes:
        probe = index.lookup.probe(analysis, article.id)
        snapshot = await index.lookup.read_snapshot([probe])
        of_kind = {"block": 0, "sketch": 0}
        for part in snapshot.buckets[probe.id]:
            for key, value in zip(part.keys, part.values, strict=True):
                of_kind["block" if keys.kind_of(key) == b"b" else "sketch"] += len(value or b"")
        (result,) = index.lookup.evaluate_probes(snapshot, [probe])
        terms = keys.term_buckets(keys.tag(space, 0), [term_hash(term) for term, _ in analysis.terms])
        of_kind["term"] = sum(len(value or b"") for value in await store.read(terms))
        for kind, size in of_kind.items():
            read[kind].append(size)
        read["candidate"].append(len(result.ranked_numbers))
        candidates.update(result.ranked_numbers)
        read["near"].append(len(result.by_bits[0]))
    await store.close()
    figures: Figures = {
        "records compared": float(np.mean(read["candidate"])),
        "within 7 bits": float(np.mean(read["near"])),
    }
    for kind, size in entry_bytes.items():
        sizes = np.array(read[kind])
        figures[f"{kind} entries"] = float(sizes.mean() / size)
        figures[f"{kind} entries p99"] = float(np.percentile(sizes, 99) / size)
        figures[f"{kind} kB"] = float(sizes.mean() / 1000)
    return figures, candidates


async def numbers_by_terms(url: str, space: str, analyses: Sequence[Analysis]) -> set[int]:
    """The articles that ``/related`` may read for articles with these terms."""
    store, found = open_redis_store(url, socket_timeout_s=HANG_LIMIT_S), set[int]()
    for analysis in analyses:
        names = keys.term_buckets(keys.tag(space, 0), [term_hash(term) for term, _ in analysis.terms])
        for value in await store.read(names):
            found.update(decode_numbers(value or b"", TERM_REMAINDER_BYTES).tolist())
    await store.close()
    return found


async def serve(
    url: str, articles: Sequence[Article], stored_ids: Sequence[str], words: Sequence[str]
) -> Figures:
    """Check and insert ``articles`` over HTTP, then read: CPU per article and latencies.

    The first ``WARM_UP`` articles are not counted.
    """
    client, figures, started = redis.Redis.from_url(url), Figures(), time.perf_counter()
    async with (
        running_service("--store-url", url) as running,
        aiohttp.ClientSession() as session,
    ):
        figures["start-up s"] = time.perf_counter() - started

        async def post(article: Article) -> None:
            body = {"id": article.id, "title": article.title, "text": article.text, "source": article.source}
            while True:
                async with session.post(running.url + "/v1/articles", json=body) as response:
                    await response.read()
                    if response.status in (200, 201):
                        return
                    assert response.status == 503, response.status
                await asyncio.sleep(0.1)

        async def get(path: str) -> None:
            async with session.get(running.url + path) as response:
                assert response.status == 200, await response.text()
                await response.read()

        warm_up = min(WARM_UP, len(articles) // 4)
        await _timed([lambda a=a: post(a) for a in articles[:warm_up]], CALLERS)
        counted = articles[warm_up:]
        before, server_s, started = running.usage(), server_cpu_s(client), time.perf_counter()
        taken = await _timed([lambda a=a: post(a) for a in counted], CALLERS)
        seconds, after = time.perf_counter() - started, running.usage()
        parts = after.parts_since(before)
        figures["server CPU ms"] = (server_cpu_s(client) - server_s) * 1000 / len(counted)
        figures["client CPU ms"] = after.since(before)["service"] * 1000 / len(counted)
        figures["of it requests"] = parts.get("requests", 0.0) * 1000 / len(counted)
        figures["CPU ms"] = figures["server CPU ms"] + figures["client CPU ms"]
        figures["articles/s"] = len(counted) / seconds
        figures |= _percentiles("insert", taken)
        related = await _timed(
            [lambda i=i: get(f"/v1/articles/{i.replace('/', '%2F')}/related") for i in stored_ids], 1
        )
        figures |= _percentiles("related", related)
        search = await _timed([lambda w=w: get(f"/v1/search?q={w}") for w in words], 1)
        figures |= _percentiles("search", search)
    client.close()
    return figures


async def _timed(calls: Sequence[Any], callers: int) -> list[float]:
    """Make each call once, from ``callers`` concurrent callers; ms of each."""
    waiting, taken = iter(calls), []

    async def caller() -> None:
        for call in waiting:
            started = time.perf_counter()
            await call()
            taken.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return taken


def _percentiles(name: str, taken: Sequence[float]) -> Figures:
    p50, p99 = np.percentile(taken, [50, 99]) if taken else (0.0, 0.0)
    return {f"{name} p50 ms": float(p50), f"{name} p99 ms": float(p99)}


def snapshot(client: redis.Redis) -> Figures:
    """Seconds until the store has written its data to a new log (it forks), and its size."""
    started = time.perf_counter()
    client.config_set("appendonly", "yes")
    while True:
        info = client.info("persistence")
        if not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]:
            break
        time.sleep(0.1)
    assert info["aof_last_bgrewrite_status"] == "ok", info
    return {
        "snapshot s": time.perf_counter() - started,
        "log GB": info["aof_current_size"] / 1e9,
        "fork ms": client.info("stats")["latest_fork_usec"] / 1000,
    }


async def compact(url: str, spaces: Sequence[str], space: str, now_ms: int) -> Figures:
    """Seal the segment and compact it: seconds, CPU of this process and of the store, longest step."""
    store, client = open_redis_store(url, socket_timeout_s=HANG_LIMIT_S), redis.Redis.from_url(url)
    index = Index(store, spaces, retention_ms=90 * DAY_MS, segment_max_articles=UNLIMITED)
    before = client.info("memory")["used_memory"]
    server_s, cpu_s, started = server_cpu_s(client), time.process_time(), time.perf_counter()
    await index.segments.seal(space, (await index.segments.stack(space)).last, now_ms)
    steps, step_started = [0.0], started
    async for _ in Compactor(index).steps(space, now_ms):
        steps.append(time.perf_counter() - step_started)
        step_started = time.perf_counter()
    found = {
        "compaction s": time.perf_counter() - started,
        "compaction client CPU s": time.process_time() - cpu_s,
        "compaction server CPU s": server_cpu_s(client) - server_s,
        "compaction step p99.9 ms": float(np.percentile(steps, 99.9)) * 1000,
        "compaction saved MB": (before - client.info("memory")["used_memory"]) / 1e6,
    }
    await store.close()
    client.close()
    return found


def print_result(size: int, label: str, figures: Figures) -> None:
    """Print one JSON line."""
    rounded = {name: round(value, 3 if abs(value) < 100 else 1) for name, value in figures.items()}
    print(json.dumps({"stored": size, "articles": label, **rounded}), flush=True)
