"""CPU and latency of the service on this machine (``scripts/bench``); one JSON line per measurement.

    analyse   CPU per article, text to fingerprint and sketch, in one process
    post      POST /v1/articles at concurrency 1 and 16 over loopback, articles of about 400 words:
              wall time per request as the client sees it, closed loop
    ingest    `aggregator ingest` of the whole file into memory and into the running server

Articles come from ``--file``, else from the development data, else are generated from the words of the
demonstration. Client, server and store share the cores of this machine; a server alone is faster.
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
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp

from aggregator import __version__
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.domain import Article
from aggregator.runtime import demo
from aggregator.settings import Settings
from aggregator_archive.rows import read_rows
from tests.support.development_data import DATA
from tests.support.processes import Usage, usage
from tests.support.server_fixture import serving

ROOT = Path(__file__).resolve().parents[2]
WORDS = 400
REFUSED_PAUSE_S = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", metavar="analyse|post|ingest", help="default: all")
    parser.add_argument("--file", help=".jsonl or .jsonl.gz of articles")
    parser.add_argument("--articles", type=int, default=2000, help="number of articles to analyze and post")
    args = parser.parse_args()
    file = args.file or default_file()
    print_result(
        "machine",
        cores=os.cpu_count(),
        python=platform.python_version(),
        aggregator=__version__,
        articles=file or "generated",
    )
    texts = list(itertools.islice(articles(file), args.articles))
    asyncio.run(measure(args.what or ["analyse", "post", "ingest"], texts, file))


async def measure(measurements: Sequence[str], texts: Sequence[dict[str, str]], file: str | None) -> None:
    """Run the measurements in turn, each on a new service."""
    if "analyse" in measurements:
        measure_analysis(texts)
    if "post" in measurements:
        for concurrency in (1, 16):
            async with running_service() as running:
                await measure_posts(running.url, texts, concurrency)
    if "ingest" in measurements and file:
        measure_ingest("memory", ["--store", "memory"], file)
        async with running_service() as running:
            measure_ingest("server", ["--server", running.url], file)


def print_result(measured: str, **figures: Any) -> None:
    """Print one JSON line."""
    print(json.dumps({"measured": measured, **figures}), flush=True)


def default_file() -> str | None:
    """English articles with texts from the development data, if present."""
    found = DATA / "allsides_dev.jsonl.gz"
    return str(found) if found.exists() else None


def articles(file: str | None, *, whole: bool = False) -> Iterator[dict[str, str]]:
    """Distinct request bodies of ``WORDS`` words; with ``whole`` texts are not cut."""
    if file is None:
        vocabulary = sorted(
            {word for row in demo.load_rows() if row["text"].isascii() for word in row["text"].split()}
        )
        for number in itertools.count():
            yield {"id": str(number), "text": " ".join(random.Random(number).choices(vocabulary, k=WORDS))}
    for row in read_rows([file]) if file else ():
        words = row["text"].split()
        if len(words) >= WORDS:
            yield {
                "id": str(row["id"]),
                "title": (row.get("title") or "")[:500],
                "text": " ".join(words if whole else words[:WORDS]),
            }


def measure_analysis(bodies: Sequence[dict[str, str]]) -> None:
    """CPU per article, after a warm-up that fills the caches as in a running service."""
    analyzer = Analyzer(load_models())
    articles = [Article(id=b["id"], title=b.get("title", ""), text=b["text"]) for b in bodies]
    analyzer.analyze_many(articles[: len(articles) // 4])
    started = time.process_time()
    analyzer.analyze_many(articles)
    print_result(
        "analyse",
        articles=len(articles),
        words=WORDS,
        cpu_ms_per_article=round((time.process_time() - started) * 1000 / len(articles), 3),
    )


async def measure_posts(url: str, bodies: Sequence[dict[str, str]], concurrency: int) -> None:
    """Post every body once from ``concurrency`` clients; the first 100 are not counted.

    A post that is refused (503) is repeated; only its last attempt is timed.
    """
    waiting = iter(bodies)
    taken_ms: list[float] = []
    refusals = 0

    async def client(session: aiohttp.ClientSession) -> None:
        nonlocal refusals
        for body in waiting:
            data = json.dumps(body).encode()
            while True:
                started = time.perf_counter()
                async with session.post(url + "/v1/articles", data=data) as response:
                    await response.read()
                if response.status != HTTPStatus.SERVICE_UNAVAILABLE:
                    break
                refusals += 1
                await asyncio.sleep(REFUSED_PAUSE_S)
            assert response.status in (200, 201), response.status
            taken_ms.append((time.perf_counter() - started) * 1000)

    async with aiohttp.ClientSession(headers={"Content-Type": "application/json"}) as session:
        started = time.perf_counter()
        await asyncio.gather(*(client(session) for _ in range(concurrency)))
        seconds = time.perf_counter() - started
    counted = sorted(taken_ms[100:])
    print_result(
        "post", concurrency=concurrency, articles=len(taken_ms), words=WORDS,
        p50_ms=round(counted[len(counted) // 2], 2), p99_ms=round(counted[int(len(counted) * 0.99)], 2),
        per_second=round(len(taken_ms) / seconds), refusals=refusals,
    )  # fmt: skip


def measure_ingest(target: str, options: Sequence[str], file: str) -> None:
    """Import the whole file with the command line; includes its start."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "aggregator", "ingest", *options, "--out", os.devnull, file]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    print_result(
        "ingest",
        into=target,
        exit_code=done.returncode,
        seconds=round(time.perf_counter() - started, 1),
        last_line=done.stderr.strip().splitlines()[-1:],
    )


@dataclass(frozen=True, slots=True)
class RunningService:
    """A service started by the benchmark."""

    url: str
    pid: int

    def usage(self) -> Usage:
        """Current CPU and memory of its processes."""
        return usage(self.pid)


@asynccontextmanager
async def running_service(*options: str, new_session: bool = False) -> AsyncIterator[RunningService]:
    """``aggregator serve`` on a new embedded store, with the default interval of the detector."""
    pids: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as directory:
        async with serving(
            *options,
            pids=pids,
            new_session=new_session,
            data_dir=directory,
            log_level="WARNING",
            detector_interval_seconds=Settings().detector_interval_seconds,
        ) as url:
            yield RunningService(url, next(iter(pids)))


if __name__ == "__main__":
    main()
