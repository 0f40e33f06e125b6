"""How fast is the service on this machine? Run by scripts/bench; prints one JSON line per measurement.

    analyse   CPU per article, text to fingerprint and sample, in one process
    post      POST /v1/articles at concurrency 1 and 16 over loopback, articles of about 400 words:
              wall time per request as the client sees it, closed loop
    ingest    `aggregator ingest` of the whole file into memory and into the running server

Articles come from a file given, else from the development data, else are made of the demonstration's words.
Client, server and store share this machine's cores, so a server alone is faster.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from aggregator import __version__
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.domain import Article
from aggregator.offline import jsonl
from aggregator.runtime import demo
from aggregator.settings import Settings
from tests.support.development_data import DATA
from tests.support.processes import Usage, usage
from tests.support.server_fixture import serving

ROOT = Path(__file__).resolve().parents[2]
WORDS = 400


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", metavar="analyse|post|ingest", help="default: all")
    parser.add_argument("--file", help=".jsonl or .jsonl.gz of articles")
    parser.add_argument("--articles", type=int, default=2000, help="how many to analyse and post")
    args = parser.parse_args()
    file = args.file or default_file()
    tell(
        "machine",
        cores=os.cpu_count(),
        python=platform.python_version(),
        aggregator=__version__,
        articles=file or "made up",
    )
    texts = list(itertools.islice(articles(file), args.articles))
    asyncio.run(measure(args.what or ["analyse", "post", "ingest"], texts, file))


async def measure(wanted: Sequence[str], texts: Sequence[dict[str, str]], file: str | None) -> None:
    """One after the other, each on a service of its own."""
    if "analyse" in wanted:
        analyse(texts)
    if "post" in wanted:
        for concurrency in (1, 16):
            async with own_service() as running:
                await post(running.url, texts, concurrency)
    if "ingest" in wanted and file:
        ingest("memory", ["--store", "memory"], file)
        async with own_service() as running:
            ingest("server", ["--server", running.url], file)


def tell(measured: str, **figures: Any) -> None:
    """One line."""
    print(json.dumps({"measured": measured, **figures}), flush=True)


def default_file() -> str | None:
    """English articles with texts, if the development data is there."""
    found = DATA / "allsides_dev.jsonl.gz"
    return str(found) if found.exists() else None


def articles(file: str | None, *, whole: bool = False) -> Iterator[dict[str, str]]:
    """Bodies of about WORDS words each, all different; ``whole``: of WORDS or more."""
    if file is None:
        vocabulary = sorted(
            {word for row in demo.load_rows() if row["text"].isascii() for word in row["text"].split()}
        )
        for number in itertools.count():
            yield {"id": str(number), "text": " ".join(random.Random(number).choices(vocabulary, k=WORDS))}
    for row in jsonl.read_rows([file]) if file else ():
        words = row["text"].split()
        if len(words) >= WORDS:
            yield {
                "id": str(row["id"]),
                "title": (row.get("title") or "")[:500],
                "text": " ".join(words if whole else words[:WORDS]),
            }


def analyse(bodies: Sequence[dict[str, str]]) -> None:
    """CPU, after a warm-up that fills the stemmer's cache as a running service has it."""
    analyser = Analyzer(load_models())
    given = [Article(id=b["id"], title=b.get("title", ""), text=b["text"]) for b in bodies]
    analyser.analyze_many(given[: len(given) // 4])
    started = time.process_time()
    analyser.analyze_many(given)
    tell(
        "analyse",
        articles=len(given),
        words=WORDS,
        cpu_ms_per_article=round((time.process_time() - started) * 1000 / len(given), 3),
    )


async def post(url: str, bodies: Sequence[dict[str, str]], concurrency: int) -> None:
    """Every body once, by so many clients; the first hundred are not counted."""
    waiting = iter(bodies)
    taken_ms: list[float] = []

    async def client(session: aiohttp.ClientSession) -> None:
        for body in waiting:
            data = json.dumps(body).encode()
            started = time.perf_counter()
            async with session.post(url + "/v1/articles", data=data) as answer:
                await answer.read()
                assert answer.status in (200, 201), await answer.text()
            taken_ms.append((time.perf_counter() - started) * 1000)

    async with aiohttp.ClientSession(headers={"Content-Type": "application/json"}) as session:
        started = time.perf_counter()
        await asyncio.gather(*(client(session) for _ in range(concurrency)))
        seconds = time.perf_counter() - started
    counted = sorted(taken_ms[100:])
    tell(
        "post", concurrency=concurrency, articles=len(taken_ms), words=WORDS,
        p50_ms=round(counted[len(counted) // 2], 2), p99_ms=round(counted[int(len(counted) * 0.99)], 2),
        per_second=round(len(taken_ms) / seconds),
    )  # fmt: skip


def ingest(where: str, options: Sequence[str], file: str) -> None:
    """The whole file through the command line; start-up included."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "aggregator", "ingest", *options, "--out", os.devnull, file]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    tell(
        "ingest",
        into=where,
        exit_code=done.returncode,
        seconds=round(time.perf_counter() - started, 1),
        said=done.stderr.strip().splitlines()[-1:],
    )


@dataclass(frozen=True, slots=True)
class Running:
    """A service of our own."""

    url: str
    pid: int

    def usage(self) -> Usage:
        """CPU and memory now."""
        return usage(self.pid)


@asynccontextmanager
async def own_service(*options: str) -> AsyncIterator[Running]:
    """``aggregator serve`` on an embedded store of its own, with the pauses of the detector that it has by default."""
    pids: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as directory:
        async with serving(
            *options,
            pids=pids,
            data_dir=directory,
            log_level="WARNING",
            detector_interval_seconds=Settings().detector_interval_seconds,
        ) as url:
            yield Running(url, next(iter(pids)))


if __name__ == "__main__":
    main()
