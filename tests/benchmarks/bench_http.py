"""How much does the service bear? ``scripts/bench http [--lang en zh] [--rates 50 100 ...] [--json FILE]``

Per language, over loopback, a fresh service with its embedded store:

    batch      all articles as NDJSON in four turns, one request after another (of each of ``--callers``); how far the
               event detector was behind then, and how long it took to catch up (its CPU counts). After each turn
               what the CPU of its parts allows: text (article to fingerprint and sample) and index (check-and-insert
               of ready analyses) of the same articles, behind the same ones, on ``--cores``; so both see the machine
               as quick as it is, the same words known and as much stored. A turn before the first does not count.
               Then datasketch's MinHashLSH on the same kind of store, for some of the articles
    single     POST /v1/articles at rising rates, an **open loop**: requests are sent when they are due (a Poisson
               process), whatever became of those before, and latency counts from when they were due
    overload   three times the highest rate that held: what is answered, what is refused and how fast, and
               whether a request afterwards is answered as before

Articles are those of the development data (English cut to 400 words, Chinese to 800 characters), else made up.
Generator, service and store share this machine's cores; each one's CPU and memory are printed.
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
from aggregator.app import build_core
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from aggregator.index import Index
from aggregator.offline import jsonl
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import wall_clock_ms
from tests.benchmarks.bench_service import Running, default_file, own_service
from tests.benchmarks.bench_service import articles as english
from tests.support.cpu_spinner import add_option, awake
from tests.support.development_data import DATA
from tests.support.processes import server_cpu_s

P99_MS = 100.0
CHARACTERS = 800
BATCH_LINES = 500
CONNECTIONS = 256
PEER_PERMUTATIONS = 128
CATCH_UP_S = 120.0
TURNS = 4
ANSWERED, READ = "aggregator_articles_total", "aggregator_detector_articles_total"
_OURS = "市议会今天通过新的桥梁预算案工程将于春季开始河边居民希望夜间施工能够尽量减少噪音"


def bodies(lang: str) -> Iterator[dict[str, str]]:
    """Articles of a language, without end: later rounds come under other ids, with a word of their own."""
    for turn in itertools.count():
        for row in _texts(lang):
            yield row if not turn else {
                **row, "id": f"{row['id']}-{turn}", "text": f"{row['text']} {turn}"
            }  # fmt: skip


def _texts(lang: str) -> Iterator[dict[str, str]]:
    if lang == "en":
        yield from english(default_file())
    elif (file := DATA / "xinwenlianbo_dev.jsonl.gz").exists():
        for row in jsonl.read_rows([str(file)]):
            if len(row["text"]) >= CHARACTERS // 2:
                yield {
                    "id": str(row["id"]),
                    "title": row.get("title") or "",
                    "text": row["text"][:CHARACTERS],
                }
    else:
        for number in range(10_000):
            made = random.Random(number)
            yield {"id": f"zh{number}", "text": "".join(made.choices(_OURS, k=CHARACTERS))}


# -- batches, and what the CPU of their parts allows -------------------------------------------


async def batches(running: Running, rows: Sequence[dict[str, str]], callers: int = 1) -> dict[str, Any]:
    """NDJSON requests, of each caller one after another; articles per second, how far the detector was behind at the
    end and for how long, and CPU per article of each process until it was not."""
    lines = [json.dumps(row).encode() for row in rows]
    async with aiohttp.ClientSession(headers={"Content-Type": "application/x-ndjson"}) as session:
        begun = time.time_ns()  # in no id before: the detector reads each article once
        await _batch(
            session, running.url, [b'{"id": "warm-%d-%d", "text": "warm up"}' % (begun, i) for i in range(64)]
        )
        await _caught_up(session, running.url)
        before, started = running.usage(), time.perf_counter()
        starts = iter(range(0, len(lines), BATCH_LINES))

        async def caller() -> None:
            for start in starts:
                await _batch(session, running.url, lines[start : start + BATCH_LINES])

        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(caller())
        seconds = time.perf_counter() - started
        behind, later_s = await _caught_up(session, running.url)
    after = running.usage()
    return {
        "articles": len(rows),
        "callers": callers,
        "per_second": round(len(rows) / seconds, 1),
        "detector_behind": behind,
        "caught_up_after_s": round(later_s, 1),
        "cpu_us_per_article": {
            role: round(s / len(rows) * 1e6) for role, s in after.since(before).items()
        },
        "of_service_us_per_article": {
            part: round(s / len(rows) * 1e6) for part, s in after.parts_since(before).items()
        },
        "resident_mb": {role: round(mb) for role, mb in after.resident_mb.items()},
    }  # fmt: skip


async def _batch(session: aiohttp.ClientSession, url: str, lines: Sequence[bytes]) -> None:
    async with session.post(url + "/v1/articles/batch", data=b"\n".join(lines)) as answer:
        said = (await answer.read()).splitlines()
    assert answer.status == 200 and len(said) == len(lines), (answer.status, said[:1])
    assert all(b'"verdict"' in line for line in said), next(s for s in said if b'"verdict"' not in s)


async def _caught_up(session: aiohttp.ClientSession, url: str) -> tuple[int, float]:
    """How many articles the detector has not read yet, and how long it takes to read them."""
    started = time.perf_counter()
    first = behind = await _behind(session, url)
    async with asyncio.timeout(CATCH_UP_S):
        while behind > 0:
            await asyncio.sleep(0.1)
            behind = await _behind(session, url)
    return first, time.perf_counter() - started if first else 0.0


async def _behind(session: aiohttp.ClientSession, url: str) -> int:
    """Articles answered and not read by the detector, of whatever processes."""
    async with session.get(url + "/metrics") as answer:
        lines = (await answer.text()).splitlines()
    answered, read = (
        sum(int(float(line.split()[-1])) for line in lines if line.startswith(name))
        for name in (ANSWERED, READ)
    )
    return answered - read


class Parts:
    """Text and index by themselves, over the articles that the service was given, in the same order."""

    def __init__(self, server: EmbeddedServer) -> None:
        self._analyser = Analyzer(load_models())
        self._ready: dict[str, Any] = {}
        self._store, self._sync = open_redis_store(server.url), redis.Redis.from_url(server.url)
        index = Index(self._store, self._analyser.spaces, retention_ms=90 * 86_400_000)
        self._ingest = build_core(index, self._prepared, Policy(), clock=wall_clock_ms).ingest

    async def take(self, rows: Sequence[dict[str, str]]) -> dict[str, float]:
        """CPU in microseconds per article: ``text`` in this process, ``index`` in this one and its store together."""
        given = [Article(id=r["id"], title=r.get("title", ""), text=r["text"]) for r in rows]
        started = time.process_time()
        made = self._analyser.analyze_many(given)
        text_s = time.process_time() - started
        self._ready = {a.id: found for a, found in zip(given, made, strict=True)}
        before_s, started = server_cpu_s(self._sync), time.process_time()
        for start in range(0, len(given), BATCH_LINES):
            await self._ingest.submit_many(given[start : start + BATCH_LINES])
        client_s = time.process_time() - started
        index_s = client_s + server_cpu_s(self._sync) - before_s
        return {
            "text_cpu_us": text_s / len(rows) * 1e6,
            "index_client_cpu_us": client_s / len(rows) * 1e6,
            "index_cpu_us": index_s / len(rows) * 1e6,
        }

    async def close(self) -> None:
        """Of the store only the connections."""
        await self._store.close()
        self._sync.close()

    async def _prepared(self, some: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [self._ready[article.id] for article in some]


def peer(rows: Sequence[dict[str, str]]) -> dict[str, Any] | str:
    """datasketch's MinHashLSH on such a store: query, then insert; without it, why it is not run."""
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
            found = MinHash(num_perm=PEER_PERMUTATIONS)
            found.update_batch([" ".join(words[i : i + 3]).encode() for i in range(max(1, len(words) - 2))])
            if not lsh.query(found):
                lsh.insert(row["id"], found)
        seconds, cpu_s = time.perf_counter() - started, time.process_time() - started_s
        cpu_s += server_cpu_s(sync) - before_s
        sync.close()
    return {
        "articles": len(rows),
        "per_second": round(len(rows) / seconds, 1),
        "cpu_us_per_article": round(cpu_s / len(rows) * 1e6),
    }


# -- single requests, open loop ----------------------------------------------------------------


async def offered(
    running: Running, rows: Iterator[dict[str, str]], rate: float, seconds: float
) -> dict[str, Any]:
    """``rate`` requests per second for ``seconds``; latency from when each was due."""
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

        async def one(body: bytes, due: float) -> None:
            try:
                async with session.post(running.url + "/v1/articles", data=body) as answer:
                    await answer.read()
                    status = answer.status
            except (aiohttp.ClientError, TimeoutError):
                status = 0
            taken.setdefault(status, []).append((time.perf_counter() - started - due) * 1000)

        async with asyncio.TaskGroup() as group:
            for body, due in zip(data, due_s.tolist(), strict=True):
                wait_s = due - (time.perf_counter() - started)
                await asyncio.sleep(max(0.0, wait_s))
                group.create_task(one(body, due))
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


def holds(figures: dict[str, Any]) -> bool:
    """Everything answered, and 99 % of it within the limit."""
    return figures.get("p99_ms", P99_MS + 1) <= P99_MS and set(figures["statuses"]) <= {"200", "201"}


async def rising(
    running: Running, rows: Iterator[dict[str, str]], rates: Sequence[float], seconds: float
) -> float:
    """The latency curve, printed; the highest rate that held, or 0. Between the last that held and the first that did not: once more."""
    best, worst = 0.0, 0.0
    for rate in rates:
        figures = await offered(running, rows, rate, seconds)
        tell("single", **figures)
        if not holds(figures):
            worst = rate
            break
        best = rate
    if best and worst:
        figures = await offered(running, rows, (best + worst) / 2, seconds)
        tell("single", **figures)
        best = (best + worst) / 2 if holds(figures) else best
    return best


# -- everything --------------------------------------------------------------------------------

TOLD: list[dict[str, Any]] = []


def tell(measured: str, **figures: Any) -> None:
    """One line."""
    TOLD.append({"measured": measured, **figures})
    print(json.dumps(TOLD[-1]), flush=True)


async def run(lang: str, args: argparse.Namespace) -> None:
    """All measurements of a language."""
    stream = bodies(lang)
    options = ["--workers", str(args.workers)] if args.workers > 1 else []
    async with own_service(*options) as running:
        await in_turns(running, lang, stream, args)
        tell("warm-up", lang=lang, **(await offered(running, stream, args.rates[0], 2)))
        best = await rising(running, stream, args.rates, args.seconds)
        tell("highest rate", lang=lang, p99_within_ms=P99_MS, per_second=best)
        if best:
            tell("overload", lang=lang, **(await offered(running, stream, 3 * best, args.seconds)))
            tell("afterwards", lang=lang, **(await offered(running, stream, args.rates[0], 3)))


async def in_turns(
    running: Running, lang: str, stream: Iterator[dict[str, str]], args: argparse.Namespace
) -> None:
    """The service, then its parts, with the same articles; the first turn does not count. Medians of the others."""
    told: list[dict[str, float]] = []
    spent: list[float] = []
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as server:
        parts = Parts(server)
        for turn in range(TURNS + 1):
            rows = list(itertools.islice(stream, args.articles // TURNS))
            figures, cpu = await batches(running, rows, args.callers), await parts.take(rows)
            if turn:
                tell("batch", lang=lang, **figures)
                spent.append(
                    sum(us for role, us in figures["cpu_us_per_article"].items() if role != "generator")
                )
                told.append(allowed(figures["per_second"], spent[-1], cpu, args.cores))
                tell("what its parts allow", lang=lang, **told[-1])
        await parts.close()
    tell("medians", lang=lang, **{name: round(median(one[name] for one in told), 3) for name in told[0]})
    other = await asyncio.to_thread(peer, rows[: args.peer])
    if isinstance(other, str):
        tell("datasketch MinHashLSH", lang=lang, said=other)
        return
    tell(
        "datasketch MinHashLSH",
        lang=lang,
        **other,
        times_as_fast=round(figures["per_second"] / other["per_second"], 1),
        times_less_cpu=round(other["cpu_us_per_article"] / spent[-1], 1),
    )


def allowed(per_second: float, spent_us: float, cpu: dict[str, float], cores: int) -> dict[str, float]:
    """What so many cores could do if there were nothing but text and index, and how much of it was reached."""
    us = cpu["text_cpu_us"] + cpu["index_cpu_us"]
    return {
        **{name: round(each) for name, each in cpu.items()},
        "cores": cores,
        "reached_per_second": per_second,
        "per_second": round(cores * 1e6 / us, 1),
        "reached": round(per_second * us / cores / 1e6, 3),
        "by_cpu": round(us / spent_us, 3),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench http", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lang", nargs="*", default=["en", "zh"], choices=["en", "zh"])
    parser.add_argument("--articles", type=int, default=4000, help="in batches, per language")
    parser.add_argument("--callers", type=int, default=1, help="that send batches at once")
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
        Path(args.json).write_text(json.dumps(TOLD, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
