"""Latency of single posts during a bulk import (``scripts/bench beside``); one JSON line per case.

One crawler posts articles of about 400 words to a service on an embedded store, one at a time with a short
pause after each: alone, then while ``aggregator ingest FILE`` imports other articles through the same
service, then while it imports them into the same store with its own processes. All cases run
``--repetitions`` times, each time on a new store, since the speed of a machine varies from minute to minute.

    p99_ms       median over the repetitions
    p99_ratio    p99_ms divided by that of the case "alone"
    load_alone   articles per second that the import stores while nothing is posted
    load_beside  the same while the crawler posts

Crawler, import, service and store share the cores of this machine. ``--rate`` limits the import.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import aiohttp
import redis.asyncio

from aggregator.store.embedded import EmbeddedServer
from tests.benchmarks.bench_service import ROOT, WORDS, articles, default_file, print_result
from tests.support.cpu_spinner import add_option, awake
from tests.support.processes import usage
from tests.support.server_fixture import serving

IMPORT_LINES = 12_000  # more than an import stores in one repetition
SOURCE_ARTICLES = 5000
TICK_S = 2
IDLE_SHARE = 0.05  # of a core
PAUSE_S = 0.02
WARM_UP = 200
UNCOUNTED = 50  # posts before the measurement: the import notices the first within 0.5 s
START_S = 60.0
# The import is measured without posts for ALONE_S, at least CALM_S after the last post, when it is no longer
# throttled.
CALM_S, ALONE_S = 3.0, 4.0
Body = dict[str, str]


@dataclass(slots=True)
class Case:
    """Measurements of one case; one entry per repetition."""

    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    worst_ms: list[float] = field(default_factory=list)
    load_alone: list[float] = field(default_factory=list)
    load_beside: list[float] = field(default_factory=list)
    import_lasted: bool = True

    def add_posts(self, taken_ms: list[float]) -> None:
        """Add the sorted latencies of one repetition."""
        self.p50_ms.append(taken_ms[len(taken_ms) // 2])
        self.p99_ms.append(taken_ms[int(len(taken_ms) * 0.99)])
        self.worst_ms.append(taken_ms[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=500, help="single posts per case and repetition")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--cases", nargs="*", default=["server", "store"], choices=["server", "store"])
    parser.add_argument(
        "--slowest", type=int, default=0, help="print the N slowest posts of each case", metavar="N"
    )
    parser.add_argument("--rate", type=float, default=0, help="lines per second of the import (0: unlimited)")
    add_option(parser)
    args = parser.parse_args()
    crawled, imported = articles(default_file()), _imported_articles()
    cases = {name: Case() for name in ("alone", *args.cases)}
    with awake(args.awake):
        for _ in range(args.repetitions):
            with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as store:
                asyncio.run(_run_cases(store.url, cases, crawled, imported, args))
    for name, case in cases.items():
        _print_case(name, case, cases["alone"], args)


async def _run_cases(
    store_url: str,
    cases: dict[str, Case],
    crawled: Iterator[Body],
    imported: Iterator[Body],
    args: argparse.Namespace,
) -> None:
    """Run every case once, on one service and its store."""
    pids: dict[int, str] = {}
    async with (
        serving(pids=pids, store_url=store_url, detector_interval_seconds=TICK_S, log_level="ERROR") as url,
        aiohttp.ClientSession() as session,
        redis.asyncio.Redis.from_url(store_url) as store,
    ):
        options = {"server": ["--server", url], "store": ["--store", store_url]}
        await _posts(session, url, itertools.islice(crawled, WARM_UP))
        for name, case in cases.items():
            await _wait_for_detector(next(iter(pids)))
            bodies = list(itertools.islice(crawled, args.articles + (name != "alone") * UNCOUNTED))
            if name == "alone":
                posted = await _posts(session, url, bodies)
            else:
                async with _running_import(options[name], imported, args.rate, store) as running_import:
                    posted = await _posts_during_import(running_import, case, session, url, bodies)
            case.add_posts(sorted(ms for ms, _ in posted))
            for ms, stages in sorted(posted, reverse=True)[: args.slowest]:
                print(name, round(ms, 1), stages)


async def _wait_for_detector(pid: int) -> None:
    """Wait until the detector has read the articles of the previous case and is idle."""
    async with asyncio.timeout(START_S):
        while True:
            before = usage(pid)
            await asyncio.sleep(2 * TICK_S)
            if usage(pid).since(before)["service"] < IDLE_SHARE * 2 * TICK_S:
                return


async def _posts_during_import(
    running_import: Import, case: Case, session: aiohttp.ClientSession, url: str, bodies: list[Body]
) -> list[tuple[float, str]]:
    await running_import.wait_until_storing()
    await asyncio.sleep(CALM_S)
    async with running_import.timed(case.load_alone):
        await asyncio.sleep(ALONE_S)
    await _posts(session, url, bodies[:UNCOUNTED])
    async with running_import.timed(case.load_beside, posted=len(bodies) - UNCOUNTED):
        posted = await _posts(session, url, bodies[UNCOUNTED:])
    case.import_lasted &= running_import.process.returncode is None
    return posted


class Import:
    """A running ``aggregator ingest`` and the store that it writes to."""

    def __init__(self, process: asyncio.subprocess.Process, store: redis.asyncio.Redis) -> None:
        self.process = process
        self._store = store

    async def wait_until_storing(self, articles: int = 1000) -> None:
        """Wait until it has stored ``articles`` articles."""
        before = await self._stored()
        async with asyncio.timeout(START_S):
            while await self._stored() < before + articles:  # noqa: ASYNC110  stored by another process
                await asyncio.sleep(0.1)

    @asynccontextmanager
    async def timed(self, into: list[float], posted: int = 0) -> AsyncIterator[None]:
        """Append the import rate in articles/s to ``into``; ``posted`` articles are the crawler's."""
        started_s, before = time.perf_counter(), await self._stored()
        yield
        stored = await self._stored() - before - posted
        into.append(stored / (time.perf_counter() - started_s))

    async def _stored(self) -> int:
        streams = [key async for key in self._store.scan_iter("{*}stream", count=100_000)]
        return sum([int((await self._store.xinfo_stream(key))["entries-added"]) for key in streams])


@asynccontextmanager
async def _running_import(
    options: list[str], articles: Iterator[Body], rate: float, store: redis.asyncio.Redis
) -> AsyncIterator[Import]:
    """``aggregator ingest`` of a file, or of standard input at ``rate`` lines per second."""
    with tempfile.TemporaryDirectory() as directory:
        file = _write_articles(
            Path(directory, "articles.jsonl"), itertools.islice(articles, 0 if rate else IMPORT_LINES)
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "aggregator", "ingest", "-" if rate else str(file), *options, "--no-progress"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=ROOT,
        )
        feeding = asyncio.create_task(_feed(process, articles, rate) if rate else asyncio.sleep(0))
        try:
            yield Import(process, store)
        finally:
            feeding.cancel()
            with suppress(asyncio.CancelledError):
                await feeding
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
            await process.communicate()


def _write_articles(file: Path, bodies: Iterable[Body]) -> Path:
    file.write_text("".join(json.dumps(body) + "\n" for body in bodies))
    return file


async def _feed(process: asyncio.subprocess.Process, articles: Iterator[Body], rate: float) -> None:
    """Write articles to standard input at ``rate`` lines per second."""
    assert process.stdin is not None
    started_s = time.perf_counter()
    for number, body in enumerate(articles):
        process.stdin.write(json.dumps(body).encode() + b"\n")
        await process.stdin.drain()
        await asyncio.sleep(started_s + number / rate - time.perf_counter())


def _imported_articles() -> Iterator[Body]:
    """Endless articles that differ from those of the crawler: the shuffled words of one article each."""
    sources = [
        body["text"].split()
        for body in itertools.islice(articles(default_file(), whole=True), SOURCE_ARTICLES)
    ]
    for number in itertools.count():
        words = random.Random(number).sample(sources[number % len(sources)], WORDS)
        yield {"id": f"bulk-{number}", "text": " ".join(words)}


async def _posts(session: aiohttp.ClientSession, url: str, bodies: Iterable[Body]) -> list[tuple[float, str]]:
    """Wall time of each post in ms, and its ``Server-Timing`` header."""
    taken = []
    for body in bodies:
        started = time.perf_counter()
        async with session.post(url + "/v1/articles", json=body) as response:
            await response.read()
            assert response.status in (200, 201), await response.text()
        taken.append(((time.perf_counter() - started) * 1000, response.headers.get("Server-Timing", "")))
        await asyncio.sleep(PAUSE_S)
    return taken


def _print_case(name: str, case: Case, alone: Case, args: argparse.Namespace) -> None:
    p99_ms = median(case.p99_ms)
    import_figures = {
        "load_alone": round(median(case.load_alone)), "load_beside": round(median(case.load_beside)),
        "load_lasted": case.import_lasted,
    } if case.load_alone else {}  # fmt: skip
    print_result(
        "beside", case=name if name == "alone" else f"during ingest --{name}",
        articles=args.articles, words=WORDS, repetitions=args.repetitions,
        p50_ms=round(median(case.p50_ms), 2), p99_ms=round(p99_ms, 2),
        p99_ratio=round(p99_ms / median(alone.p99_ms), 2), p99s_ms=[round(ms, 1) for ms in case.p99_ms],
        worst_ms=round(max(case.worst_ms), 1), **import_figures,
    )  # fmt: skip


if __name__ == "__main__":
    main()
