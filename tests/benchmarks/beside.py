"""Do single posts wait while a bulk load runs beside them? Run by ``scripts/bench beside``; one JSON line each.

One crawler posts articles of about 400 words to a service on an embedded store, one at a time with a short pause
after each: first alone, then while ``aggregator ingest`` loads other articles through the same service, then while
it loads them into the same store from a process of its own. ``p99_ratio`` is p99 beside over p99 alone. The
crawler, the loader, the service and the store share this machine's cores. ``--rate`` slows the load down.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

import aiohttp
from service import ROOT, WORDS, articles, default_file, tell
from serving import serving

from aggregator.store.embedded import EmbeddedServer

PAUSE_S = 0.02
WARM_UP = 200
START_S = 60.0
Body = dict[str, str]


def main() -> None:
    """Alone, beside a load through the service, beside a load into the store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=1000, help="single posts per case")
    parser.add_argument(
        "--rate", type=float, default=0, help="lines per second of the load (0: all it takes)"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, EmbeddedServer(directory) as store:
        asyncio.run(_run(store.url, args.articles, args.rate))


async def _run(store_url: str, count: int, rate: float) -> None:
    stock = articles(default_file())
    async with (
        serving(store_url=store_url, tick_seconds=2, log_level="ERROR") as url,
        aiohttp.ClientSession() as session,
    ):
        await _posts(session, url, itertools.islice(stock, WARM_UP))
        alone = await _posts(session, url, itertools.islice(stock, count))
        _tell("alone", alone, alone)
        for options in (["--server", url], ["--store", store_url]):
            posted = list(itertools.islice(stock, count))
            load = await _loading(options)
            feeding = asyncio.create_task(_feed(load, stock, rate))
            await _until_stored(load)
            beside = await _posts(session, url, posted)
            lasted = load.returncode is None
            feeding.cancel()
            with suppress(asyncio.CancelledError):
                await feeding
            said = await _end(load)
            _tell(f"beside ingest {options[0]}", beside, alone, load=said, load_lasted=lasted)


async def _loading(options: list[str]) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "aggregator", "ingest", "-", *options, "--no-progress"]
    return await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, cwd=ROOT, limit=2**20,
    )  # fmt: skip


async def _until_stored(load: asyncio.subprocess.Process) -> None:
    """Its first verdicts are there: it has started, and is in the midst of it."""
    assert load.stdout is not None
    async with asyncio.timeout(START_S):
        assert await load.stdout.readline()


async def _feed(load: asyncio.subprocess.Process, stock: Iterator[Body], rate: float) -> None:
    """Lines for the load, as fast as it takes them or at ``rate``, and its answers away."""
    assert load.stdin is not None and load.stdout is not None
    started_s = time.perf_counter()
    for number, body in enumerate(stock):
        load.stdin.write(json.dumps(body).encode() + b"\n")
        await load.stdin.drain()
        if rate:
            await asyncio.sleep(started_s + number / rate - time.perf_counter())


async def _end(load: asyncio.subprocess.Process) -> str:
    assert load.stdin is not None
    load.stdin.close()
    _, said = await load.communicate()
    return said.decode().strip()


async def _posts(session: aiohttp.ClientSession, url: str, bodies: Iterable[Body]) -> list[float]:
    """Wall time of each, in ms."""
    taken_ms = []
    for body in bodies:
        started = time.perf_counter()
        async with session.post(url + "/v1/articles", json=body) as answer:
            await answer.read()
            assert answer.status in (200, 201), await answer.text()
        taken_ms.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(PAUSE_S)
    return sorted(taken_ms)


def _tell(case: str, taken_ms: list[float], alone_ms: list[float], **more: object) -> None:
    p50, p99 = taken_ms[len(taken_ms) // 2], taken_ms[int(len(taken_ms) * 0.99)]
    ratio = p99 / alone_ms[int(len(alone_ms) * 0.99)]
    tell(
        "beside", case=case, articles=len(taken_ms), words=WORDS, p50_ms=round(p50, 2), p99_ms=round(p99, 2),
        worst_ms=round(taken_ms[-1], 1), p99_ratio=round(ratio, 2), **more,
    )  # fmt: skip


if __name__ == "__main__":
    main()
