"""Do single posts wait while a bulk load runs beside them? Run by ``scripts/bench beside``; one JSON line each.

One crawler posts articles of about 400 words to a service on an embedded store, one at a time with a short pause
after each: alone, then while ``aggregator ingest FILE`` loads other articles through the same service, then while it
loads them into the same store from processes of its own; and all of that ``--repetitions`` times on a new store, since
two minutes of one machine differ. ``p99_ms`` is the median over the repetitions, ``p99_ratio`` that of beside over that of alone.
``load_alone`` and ``load_beside`` are the articles per second that the load stores, without single posts and with
them. The crawler, the loader, the service and the store share this machine's cores. ``--rate`` feeds the load slowly.
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
from tests.benchmarks.bench_service import ROOT, WORDS, articles, default_file, tell
from tests.support.cpu_spinner import add_option, awake
from tests.support.processes import usage
from tests.support.server_fixture import serving

LOADED = 12_000  # lines of a load's file: more than it stores in a repetition
STOCK = 5000
TICK_S = 2
IDLE = 0.05  # of a core
PAUSE_S = 0.02
WARM_UP = 200
MEETING = 50  # single posts that are not counted: the load hears of the first ones within half a second
START_S = 60.0
# Before the load is measured without single posts: so long after the last one nobody gives way to them any more.
CALM_S, ALONE_S = 3.0, 4.0
Body = dict[str, str]


@dataclass(slots=True)
class Case:
    """What was measured of one, per repetition."""

    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    worst_ms: list[float] = field(default_factory=list)
    load_alone: list[float] = field(default_factory=list)
    load_beside: list[float] = field(default_factory=list)
    lasted: bool = True

    def posts(self, taken_ms: list[float]) -> None:
        """Add one repetition's posts, sorted."""
        self.p50_ms.append(taken_ms[len(taken_ms) // 2])
        self.p99_ms.append(taken_ms[int(len(taken_ms) * 0.99)])
        self.worst_ms.append(taken_ms[-1])


def main() -> None:
    """Alone, beside a load through the service, beside a load into the store; in turns."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=500, help="single posts per case and repetition")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--cases", nargs="*", default=["server", "store"], choices=["server", "store"])
    parser.add_argument("--slowest", type=int, default=0, help="show what the slowest posts of each took")
    parser.add_argument(
        "--rate", type=float, default=0, help="lines per second of the load (0: all it takes)"
    )
    add_option(parser)
    args = parser.parse_args()
    singles, bulk = articles(default_file()), _bulk()
    cases = {name: Case() for name in ("alone", *args.cases)}
    with awake(args.awake):
        for _ in range(args.repetitions):
            with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as store:
                asyncio.run(_repeat(store.url, cases, singles, bulk, args))
    for name, case in cases.items():
        _tell(name, case, cases["alone"], args)


async def _repeat(
    store_url: str,
    cases: dict[str, Case],
    singles: Iterator[Body],
    bulk: Iterator[Body],
    args: argparse.Namespace,
) -> None:
    """Every case once, on a store and a service of their own."""
    pids: dict[int, str] = {}
    async with (
        serving(pids=pids, store_url=store_url, detector_interval_seconds=TICK_S, log_level="ERROR") as url,
        aiohttp.ClientSession() as session,
        redis.asyncio.Redis.from_url(store_url) as counted,
    ):
        options = {"server": ["--server", url], "store": ["--store", store_url]}
        await _posts(session, url, itertools.islice(singles, WARM_UP))
        for name, case in cases.items():
            await _caught_up(next(iter(pids)))
            bodies = list(itertools.islice(singles, args.articles + (name != "alone") * MEETING))
            if name == "alone":
                posted = await _posts(session, url, bodies)
            else:
                async with _loading(options[name], bulk, args.rate, counted) as load:
                    posted = await _beside(load, case, session, url, bodies)
            case.posts(sorted(ms for ms, _ in posted))
            for ms, stages in sorted(posted, reverse=True)[: args.slowest]:
                print(name, round(ms, 1), stages)


async def _caught_up(pid: int) -> None:
    """The detector has read what the load before left in the stream: nothing of it weighs on what comes next."""
    async with asyncio.timeout(START_S):
        while True:
            before = usage(pid)
            await asyncio.sleep(2 * TICK_S)
            if usage(pid).since(before)["service"] < IDLE * 2 * TICK_S:
                return


async def _beside(
    load: Load, case: Case, session: aiohttp.ClientSession, url: str, bodies: list[Body]
) -> list[tuple[float, str]]:
    await load.began()
    await asyncio.sleep(CALM_S)
    async with load.timed(case.load_alone):
        await asyncio.sleep(ALONE_S)
    await _posts(session, url, bodies[:MEETING])
    async with load.timed(case.load_beside, but=len(bodies) - MEETING):
        posted = await _posts(session, url, bodies[MEETING:])
    case.lasted &= load.process.returncode is None
    return posted


class Load:
    """A load under way. ``counted``: the store that its articles go to."""

    def __init__(self, process: asyncio.subprocess.Process, counted: redis.asyncio.Redis) -> None:
        self.process = process
        self._counted = counted

    async def began(self, articles: int = 1000) -> None:
        """It has stored some: it is in the midst of it."""
        before = await self._stored()
        async with asyncio.timeout(START_S):
            while await self._stored() < before + articles:  # noqa: ASYNC110  another process stores them
                await asyncio.sleep(0.1)

    @asynccontextmanager
    async def timed(self, into: list[float], but: int = 0) -> AsyncIterator[None]:
        """Adds how many articles a second came into the store meanwhile, ``but`` those of others."""
        started_s, before = time.perf_counter(), await self._stored()
        yield
        stored = await self._stored() - before - but
        into.append(stored / (time.perf_counter() - started_s))

    async def _stored(self) -> int:
        streams = [key async for key in self._counted.scan_iter("{*}stream", count=100_000)]
        return sum([int((await self._counted.xinfo_stream(key))["entries-added"]) for key in streams])


@asynccontextmanager
async def _loading(
    options: list[str], bulk: Iterator[Body], rate: float, counted: redis.asyncio.Redis
) -> AsyncIterator[Load]:
    """``aggregator ingest`` of a file, or of its own input at ``rate`` lines a second."""
    with tempfile.TemporaryDirectory() as directory:
        file = _written(Path(directory, "articles.jsonl"), itertools.islice(bulk, 0 if rate else LOADED))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aggregator", "ingest", "-" if rate else str(file), *options, "--no-progress",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            cwd=ROOT,
        )  # fmt: skip
        feeding = asyncio.create_task(_feed(process, bulk, rate) if rate else asyncio.sleep(0))
        try:
            yield Load(process, counted)
        finally:
            feeding.cancel()
            with suppress(asyncio.CancelledError):
                await feeding
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
            await process.communicate()


def _written(file: Path, bodies: Iterable[Body]) -> Path:
    file.write_text("".join(json.dumps(body) + "\n" for body in bodies))
    return file


async def _feed(load: asyncio.subprocess.Process, bulk: Iterator[Body], rate: float) -> None:
    """Lines for the load at ``rate``."""
    assert load.stdin is not None
    started_s = time.perf_counter()
    for number, body in enumerate(bulk):
        load.stdin.write(json.dumps(body).encode() + b"\n")
        await load.stdin.drain()
        await asyncio.sleep(started_s + number / rate - time.perf_counter())


def _bulk() -> Iterator[Body]:
    """Other articles than the crawler's, as many as are wanted: the words of one each, most of them, shuffled."""
    stock = [body["text"].split() for body in itertools.islice(articles(default_file(), whole=True), STOCK)]
    for number in itertools.count():
        words = random.Random(number).sample(stock[number % len(stock)], WORDS)
        yield {"id": f"bulk-{number}", "text": " ".join(words)}


async def _posts(session: aiohttp.ClientSession, url: str, bodies: Iterable[Body]) -> list[tuple[float, str]]:
    """Wall time of each, in ms, and what the service says of its stages."""
    taken = []
    for body in bodies:
        started = time.perf_counter()
        async with session.post(url + "/v1/articles", json=body) as answer:
            await answer.read()
            assert answer.status in (200, 201), await answer.text()
        taken.append(((time.perf_counter() - started) * 1000, answer.headers.get("Server-Timing", "")))
        await asyncio.sleep(PAUSE_S)
    return taken


def _tell(name: str, case: Case, alone: Case, args: argparse.Namespace) -> None:
    p99_ms = median(case.p99_ms)
    more = {
        "load_alone": round(median(case.load_alone)), "load_beside": round(median(case.load_beside)),
        "load_lasted": case.lasted,
    } if case.load_alone else {}  # fmt: skip
    tell(
        "beside", case=name if name == "alone" else f"beside ingest --{name}", articles=args.articles, words=WORDS,
        repetitions=args.repetitions, p50_ms=round(median(case.p50_ms), 2), p99_ms=round(p99_ms, 2),
        p99_ratio=round(p99_ms / median(alone.p99_ms), 2), p99s_ms=[round(ms, 1) for ms in case.p99_ms],
        worst_ms=round(max(case.worst_ms), 1), **more,
    )  # fmt: skip


if __name__ == "__main__":
    main()
