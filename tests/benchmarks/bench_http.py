"""Throughput and latency of the service over loopback (``scripts/bench http``).

    scripts/bench http [--lang en zh] [--rates 50 100 ...] [--json FILE]

Per language, on a new service with its embedded store:

    batch      all articles as NDJSON in four turns, one request after another per caller (``--callers``); how
               far the event detector lagged at the end, and the time it took to catch up (its CPU is
               included). After each turn the same articles go through text analysis alone (article to
               fingerprint and sketch) and through the index alone (check-and-insert of ready analyses), so
               that both are measured at the same machine speed, with the same caches and the same number of
               stored articles; this gives the rate that ``--cores`` cores would allow. An additional first
               turn is not counted. Last, datasketch's MinHashLSH on the same kind of store, for some of the
               articles
    single     POST /v1/articles at rising rates, **open loop**: requests are sent when they are due (Poisson
               process) regardless of earlier ones, and latency counts from the due time
    overload   three times the highest sustained rate: rates of answers and refusals, latency of refusals, and
               whether requests afterwards are answered as before

Articles come from the development data (English cut to 400 words, Chinese to 800 characters), or are
generated if it is absent. Load generator, service and store share the cores of this machine; CPU and memory
of each are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import unquote

import aiohttp
import numpy as np
import redis
import uvloop

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import wall_clock_ms
from aggregator_archive.rows import read_rows
from tests.benchmarks.bench_service import RunningService, default_file, running_service
from tests.benchmarks.bench_service import articles as english_articles
from tests.support.cpu_spinner import add_option, awake
from tests.support.development_data import DATA
from tests.support.processes import server_cpu_s
from tests.support.wiring import build_core

P99_MS = 100.0
CHARACTERS = 800
BATCH_LINES = 500
CONNECTIONS = 256
PEER_PERMUTATIONS = 128
CATCH_UP_S = 120.0
TURNS = 4
ANSWERED, READ = "aggregator_articles_total", "aggregator_detector_articles_total"  # metrics
_CHINESE_SAMPLE = "市议会今天通过新的桥梁预算案工程将于春季开始河边居民希望夜间施工能够尽量减少噪音"


def request_bodies(lang: str) -> Iterator[dict[str, str]]:
    """Endless articles of a language; later rounds get new ids and one additional word."""
    for turn in itertools.count():
        for row in _texts(lang):
            yield row if not turn else {
                **row, "id": f"{row['id']}-{turn}", "text": f"{row['text']} {turn}"
            }  # fmt: skip


def _texts(lang: str) -> Iterator[dict[str, str]]:
    if lang == "en":
        yield from english_articles(default_file())
    elif (file := DATA / "xinwenlianbo_dev.jsonl.gz").exists():
        for row in read_rows([str(file)]):
            if len(row["text"]) >= CHARACTERS // 2:
                yield {
                    "id": str(row["id"]),
                    "title": row.get("title") or "",
                    "text": row["text"][:CHARACTERS],
                }
    else:
        for number in range(10_000):
            rng = random.Random(number)
            yield {"id": f"zh{number}", "text": "".join(rng.choices(_CHINESE_SAMPLE, k=CHARACTERS))}


# -- batches, and the rate that their stages allow ---------------------------------------------


async def measure_batches(
    running: RunningService, rows: Sequence[dict[str, str]], callers: int = 1
) -> dict[str, Any]:
    """Send NDJSON requests, one after another per caller.

    Returns articles per second, the lag of the detector at the end and the time it took to catch up, and the
    CPU of each process per article until then.
    """
    lines = [json.dumps(row).encode() for row in rows]
    async with aiohttp.ClientSession(headers={"Content-Type": "application/x-ndjson"}) as session:
        began_ns = time.time_ns()  # makes the ids new: the detector reads each article once
        warm_up = [b'{"id": "warm-%d-%d", "text": "warm up"}' % (began_ns, i) for i in range(64)]
        await _post_batch(session, running.url, warm_up)
        await wait_for_detector(session, running.url)
        before, started = running.usage(), time.perf_counter()
        starts = iter(range(0, len(lines), BATCH_LINES))

        async def caller() -> None:
            for start in starts:
                await _post_batch(session, running.url, lines[start : start + BATCH_LINES])

        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(caller())
        seconds = time.perf_counter() - started
        lag, catch_up_s = await wait_for_detector(session, running.url)
    after = running.usage()
    return {
        "articles": len(rows),
        "callers": callers,
        "per_second": round(len(rows) / seconds, 1),
        "detector_behind": lag,
        "caught_up_after_s": round(catch_up_s, 1),
        "cpu_us_per_article": {
            role: round(s / len(rows) * 1e6) for role, s in after.since(before).items()
        },
        "of_service_us_per_article": {
            part: round(s / len(rows) * 1e6) for part, s in after.parts_since(before).items()
        },
        "resident_mb": {role: round(mb) for role, mb in after.resident_mb.items()},
    }  # fmt: skip


async def _post_batch(session: aiohttp.ClientSession, url: str, lines: Sequence[bytes]) -> None:
    async with session.post(url + "/v1/articles/batch", data=b"\n".join(lines)) as response:
        replies = (await response.read()).splitlines()
    assert response.status == 200 and len(replies) == len(lines), (response.status, replies[:1])
    assert all(b'"verdict"' in line for line in replies), next(s for s in replies if b'"verdict"' not in s)


async def wait_for_detector(session: aiohttp.ClientSession, url: str) -> tuple[int, float]:
    """Wait until the detector has read all articles; its lag in articles before, and the seconds waited."""
    started = time.perf_counter()
    first = lag = await _detector_lag(session, url)
    async with asyncio.timeout(CATCH_UP_S):
        while lag > 0:
            await asyncio.sleep(0.1)
            lag = await _detector_lag(session, url)
    return first, time.perf_counter() - started if first else 0.0


async def _detector_lag(session: aiohttp.ClientSession, url: str) -> int:
    """Number of articles answered but not read by the detector, summed over all processes."""
    async with session.get(url + "/metrics") as response:
        lines = (await response.text()).splitlines()
    answered, read = (
        sum(int(float(line.split()[-1])) for line in lines if line.startswith(name))
        for name in (ANSWERED, READ)
    )
    return answered - read


class StageBench:
    """Text analysis alone and index alone, with the articles that the service received, in the same order."""

    def __init__(self, server: EmbeddedServer) -> None:
        self._analyzer = Analyzer(load_models())
        self._analyses: dict[str, Any] = {}
        self._store, self._sync = open_redis_store(server.url), redis.Redis.from_url(server.url)
        index = Index(self._store, self._analyzer.spaces, retention_ms=90 * 86_400_000)
        self._ingest = build_core(index, self._prepared, Policy(), clock=wall_clock_ms).ingest

    async def measure(self, rows: Sequence[dict[str, str]]) -> dict[str, float]:
        """CPU in microseconds per article; ``index_cpu_us`` is the sum of this process and the store."""
        articles = [Article(id=r["id"], title=r.get("title", ""), text=r["text"]) for r in rows]
        started = time.process_time()
        analyses = self._analyzer.analyze_many(articles)
        text_s = time.process_time() - started
        self._analyses = {a.id: analysis for a, analysis in zip(articles, analyses, strict=True)}
        before_s, started = server_cpu_s(self._sync), time.process_time()
        for start in range(0, len(articles), BATCH_LINES):
            await self._ingest.submit_many(articles[start : start + BATCH_LINES])
        client_s = time.process_time() - started
        index_s = client_s + server_cpu_s(self._sync) - before_s
        return {
            "text_cpu_us": text_s / len(rows) * 1e6,
            "index_client_cpu_us": client_s / len(rows) * 1e6,
            "index_cpu_us": index_s / len(rows) * 1e6,
        }

    async def close(self) -> None:
        """Close the connections; the store keeps running."""
        await self._store.close()
        self._sync.close()

    async def _prepared(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [self._analyses[article.id] for article in articles]


def datasketch_baseline(rows: Sequence[dict[str, str]]) -> dict[str, Any] | str:
    """Datasketch's MinHashLSH on the same kind of store: query, then insert; a reason if it cannot run."""
    try:
        from datasketch import MinHash, MinHashLSH
    except ImportError:
        return "not run: datasketch is not installed (scripts/setup bench)"
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as server:
        sync = redis.Redis.from_url(server.url)
        path = unquote(server.url.removeprefix("unix://"))
        lsh = MinHashLSH(
            threshold=0.5,
            num_perm=PEER_PERMUTATIONS,
            storage_config={"type": "redis", "basename": b"peer", "redis": {"unix_socket_path": path}},
        )
        before_s, started_s, started = server_cpu_s(sync), time.process_time(), time.perf_counter()
        for row in rows:
            words = row["text"].split() if " " in row["text"][:200] else list(row["text"])
            signature = MinHash(num_perm=PEER_PERMUTATIONS)
            signature.update_batch(
                [" ".join(words[i : i + 3]).encode() for i in range(max(1, len(words) - 2))]
            )
            if not lsh.query(signature):
                lsh.insert(row["id"], signature)
        seconds, cpu_s = time.perf_counter() - started, time.process_time() - started_s
        cpu_s += server_cpu_s(sync) - before_s
        sync.close()
    return {
        "articles": len(rows),
        "per_second": round(len(rows) / seconds, 1),
        "cpu_us_per_article": round(cpu_s / len(rows) * 1e6),
    }


# -- single requests, open loop ----------------------------------------------------------------


async def open_loop(
    running: RunningService, rows: Iterator[dict[str, str]], rate: float, seconds: float
) -> dict[str, Any]:
    """Send ``rate`` requests per second for ``seconds``; latency counts from the time a request was due."""
    rng = np.random.default_rng(int(rate))
    due_s = np.cumsum(rng.exponential(1 / rate, round(rate * seconds)))
    data = [json.dumps(next(rows)).encode() for _ in due_s]
    taken: dict[int, list[float]] = {}
    async with aiohttp.ClientSession(
        headers={"Content-Type": "application/json"},
        connector=aiohttp.TCPConnector(limit=CONNECTIONS),
        timeout=aiohttp.ClientTimeout(total=30),
    ) as session:
        before, started = running.usage(), time.perf_counter()

        async def post(body: bytes, due: float) -> None:
            try:
                async with session.post(running.url + "/v1/articles", data=body) as response:
                    await response.read()
                    status = response.status
            except (aiohttp.ClientError, TimeoutError):
                status = 0
            taken.setdefault(status, []).append((time.perf_counter() - started - due) * 1000)

        async with asyncio.TaskGroup() as group:
            for body, due in zip(data, due_s.tolist(), strict=True):
                wait_s = due - (time.perf_counter() - started)
                await asyncio.sleep(max(0.0, wait_s))
                group.create_task(post(body, due))
        lasted = time.perf_counter() - started
    after = running.usage()
    good = [ms for status in (200, 201) for ms in taken.get(status, [])]
    refused = [ms for status in (429, 503) for ms in taken.get(status, [])]
    return {
        "offered_per_second": round(rate, 1),
        "answered_per_second": round(len(good) / lasted, 1),
        **_quantiles("", good),
        **_quantiles("refused_", refused),
        "statuses": dict(sorted(Counter({str(s): len(ms) for s, ms in taken.items()}).items())),
        "cpu_share": {role: round(s / lasted, 2) for role, s in after.since(before).items()},
        "resident_mb": {role: round(mb) for role, mb in after.resident_mb.items()},
    }


def _quantiles(prefix: str, ms: Sequence[float]) -> dict[str, float]:
    if not ms:
        return {}
    at = np.percentile(ms, [50, 99, 100])
    return {
        f"{prefix}{name}_ms": round(float(v), 1) for name, v in zip(("p50", "p99", "max"), at, strict=True)
    }


def is_sustained(figures: dict[str, Any]) -> bool:
    """Whether every request was answered, and 99 % of them within ``P99_MS``."""
    return figures.get("p99_ms", P99_MS + 1) <= P99_MS and set(figures["statuses"]) <= {"200", "201"}


async def highest_sustained_rate(
    running: RunningService, rows: Iterator[dict[str, str]], rates: Sequence[float], seconds: float
) -> float:
    """Measure rising rates until one fails, then the mean of the last two; 0 if none is sustained."""
    best, worst = 0.0, 0.0
    for rate in rates:
        figures = await open_loop(running, rows, rate, seconds)
        record_result("single", **figures)
        if not is_sustained(figures):
            worst = rate
            break
        best = rate
    if best and worst:
        figures = await open_loop(running, rows, (best + worst) / 2, seconds)
        record_result("single", **figures)
        best = (best + worst) / 2 if is_sustained(figures) else best
    return best


# -- everything --------------------------------------------------------------------------------

RESULTS: list[dict[str, Any]] = []


def record_result(measured: str, **figures: Any) -> None:
    """Append to ``RESULTS`` and print one JSON line."""
    RESULTS.append({"measured": measured, **figures})
    print(json.dumps(RESULTS[-1]), flush=True)


async def run(lang: str, args: argparse.Namespace) -> None:
    """Run all measurements of one language."""
    stream = request_bodies(lang)
    options = ["--workers", str(args.workers)] if args.workers > 1 else []
    async with running_service(*options) as running:
        await measure_turns(running, lang, stream, args)
        record_result("warm-up", lang=lang, **(await open_loop(running, stream, args.rates[0], 2)))
        best = await highest_sustained_rate(running, stream, args.rates, args.seconds)
        record_result("highest rate", lang=lang, p99_within_ms=P99_MS, per_second=best)
        if best:
            record_result("overload", lang=lang, **(await open_loop(running, stream, 3 * best, args.seconds)))
            record_result("afterwards", lang=lang, **(await open_loop(running, stream, args.rates[0], 3)))


async def measure_turns(
    running: RunningService, lang: str, stream: Iterator[dict[str, str]], args: argparse.Namespace
) -> None:
    """Alternate between the service and its stages alone; print each turn and the medians."""
    limits: list[dict[str, float]] = []
    spent_us: list[float] = []
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as server:
        stages = StageBench(server)
        for turn in range(TURNS + 1):
            rows = list(itertools.islice(stream, args.articles // TURNS))
            figures, cpu = await measure_batches(running, rows, args.callers), await stages.measure(rows)
            if turn:
                record_result("batch", lang=lang, **figures)
                spent_us.append(
                    sum(us for role, us in figures["cpu_us_per_article"].items() if role != "generator")
                )
                limits.append(achievable_rate(figures["per_second"], spent_us[-1], cpu, args.cores))
                record_result("rate that the stages allow", lang=lang, **limits[-1])
        await stages.close()
    medians = {name: round(median(turn[name] for turn in limits), 3) for name in limits[0]}
    record_result("medians", lang=lang, **medians)
    baseline = await asyncio.to_thread(datasketch_baseline, rows[: args.peer])
    if isinstance(baseline, str):
        record_result("datasketch MinHashLSH", lang=lang, error=baseline)
        return
    record_result(
        "datasketch MinHashLSH",
        lang=lang,
        **baseline,
        times_as_fast=round(figures["per_second"] / baseline["per_second"], 1),
        times_less_cpu=round(baseline["cpu_us_per_article"] / spent_us[-1], 1),
    )


def achievable_rate(
    per_second: float, spent_us: float, cpu: dict[str, float], cores: int
) -> dict[str, float]:
    """Rate that ``cores`` cores allow if only text and index took CPU, and the share reached."""
    us = cpu["text_cpu_us"] + cpu["index_cpu_us"]
    return {
        **{name: round(us_each) for name, us_each in cpu.items()},
        "cores": cores,
        "reached_per_second": per_second,
        "per_second": round(cores * 1e6 / us, 1),
        "reached": round(per_second * us / cores / 1e6, 3),
        "by_cpu": round(us / spent_us, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench http", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lang", nargs="*", default=["en", "zh"], choices=["en", "zh"])
    parser.add_argument("--articles", type=int, default=4000, help="in batches, per language")
    parser.add_argument("--callers", type=int, default=1, help="concurrent callers that send batches")
    parser.add_argument("--peer", type=int, default=500, help="articles for datasketch")
    parser.add_argument(
        "--rates", type=float, nargs="*", default=[50, 100, 200, 300, 400, 600, 800, 1000, 1200, 1500]
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="at each rate")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", help="write all figures to this file")
    add_option(parser)
    args = parser.parse_args()
    with awake(args.awake):
        for lang in args.lang:
            uvloop.run(run(lang, args))
    if args.json:
        Path(args.json).write_text(json.dumps(RESULTS, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
