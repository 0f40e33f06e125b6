"""Delay of one caller by another caller's pages that exhaust the extractor.

    python -m tests.benchmarks.bench_fairness [--pages 4] [--seconds 20]

One analysis process. The first caller sends pages whose extraction exceeds the time limit; then a second
caller sends plain pages one after another. Prints the latency of the second caller's pages alone, and while
the pages of the first are processed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from contextlib import suppress

from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.app import build_analyzers
from aggregator.concurrency.fair_semaphore import current_caller
from aggregator.domain import Analysis, Article
from aggregator.settings import Settings
from tests.support.factories import story
from tests.support.processes import descendants, resident_bytes

# A paragraph of 60,000 bold words (0.5 MB): extraction scans the whole paragraph for each of them.
EXPLODING = "<html><body><article><p>" + "<b>w</b> " * 60_000 + "</p></article></body></html>"


def plain_page(number: int) -> Article:
    """An ordinary page of 12 paragraphs."""
    body = "".join(f"<p>{story(number, part)}</p>" for part in range(12))
    return Article(id=str(number), html=f"<html><body><article>{body}</article></body></html>")


async def latencies_s(pool: AnalysisPool, seconds: float) -> list[float]:
    """Latencies of plain pages, sent one after another for ``seconds``."""
    current_caller.set("second")
    taken: list[float] = []
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        began_s = time.monotonic()
        (result,) = await pool.analyze_many([plain_page(len(taken))])
        assert isinstance(result, Analysis)
        taken.append(time.monotonic() - began_s)
    return taken


def summary(name: str, taken: list[float]) -> str:
    """Number of pages, median and maximum."""
    median_ms = 1000 * statistics.median(taken)
    return f"{name}: {len(taken)} pages, median {median_ms:.0f} ms, longest {max(taken):.2f} s"


async def run(pages: int, seconds: float) -> None:
    """Measure and print both cases."""
    pool = AnalysisPool(build_analyzers(Settings())[0], processes=1)
    try:
        began_s = time.monotonic()
        await pool.analyze_many([plain_page(0)])
        print(f"first page, including process start: {time.monotonic() - began_s:.1f} s")
        print(summary("alone", await latencies_s(pool, 3.0)))
        current_caller.set("first")
        tasks = [
            asyncio.create_task(pool.analyze_many([Article(id="x", html=EXPLODING)])) for _ in range(pages)
        ]
        await asyncio.sleep(0)
        began_s = time.monotonic()
        for task in tasks:
            task.add_done_callback(
                lambda ended: (
                    ended.cancelled()
                    or print(f"exploding page after {time.monotonic() - began_s:.1f} s: {ended.result()[0]}")
                )
            )
        print(summary(f"with {pages} exploding pages", await latencies_s(pool, seconds)))
        sizes = [f"{resident_bytes(pid) >> 20} MB" for pid in descendants(os.getpid())]
        print(
            f"processes: {', '.join(sizes)}; "
            f"{sum(task.done() for task in tasks)} of {pages} exploding pages answered"
        )
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        pool.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0)
    args = parser.parse_args()
    asyncio.run(run(args.pages, args.seconds))


if __name__ == "__main__":
    main()
