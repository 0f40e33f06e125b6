"""What do pages that explode in the extractor cost whoever else sends pages?

One analysis process. A first caller sends pages whose extraction takes longer than any is given; then a second one sends
plain pages, one after another, for a while. Printed: how long the second one's pages take alone, and beside the others.

    python tests/benchmarks/bench_fairness.py [--pages 4] [--seconds 20]
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
from tests.support.processes import below, resident_bytes

# Half a megabyte of a paragraph of bold words: extraction looks through all of it for each of them.
EXPLODING = "<html><body><article><p>" + "<b>w</b> " * 60_000 + "</p></article></body></html>"


def plain(number: int) -> Article:
    """A page as pages are."""
    body = "".join(f"<p>{story(number, part)}</p>" for part in range(12))
    return Article(id=str(number), html=f"<html><body><article>{body}</article></body></html>")


async def waits_s(pool: AnalysisPool, seconds: float) -> list[float]:
    """Of plain pages, one after another, for so long."""
    current_caller.set("second")
    taken: list[float] = []
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        began_s = time.monotonic()
        (result,) = await pool.analyze_many([plain(len(taken))])
        assert isinstance(result, Analysis)
        taken.append(time.monotonic() - began_s)
    return taken


def line(name: str, taken: list[float]) -> str:
    """Middle and worst."""
    return f"{name}: {len(taken)} pages, median {1000 * statistics.median(taken):.0f} ms, longest {max(taken):.2f} s"


async def run(pages: int, seconds: float) -> None:
    """Print both."""
    pool = AnalysisPool(build_analyzers(Settings())[0], processes=1)
    try:
        began_s = time.monotonic()
        await pool.analyze_many([plain(0)])
        print(f"first page, with the start of the process: {time.monotonic() - began_s:.1f} s")
        print(line("alone", await waits_s(pool, 3.0)))
        current_caller.set("first")
        tasks = [
            asyncio.create_task(pool.analyze_many([Article(id="x", html=EXPLODING)])) for _ in range(pages)
        ]
        await asyncio.sleep(0)
        began_s = time.monotonic()
        for task in tasks:
            task.add_done_callback(
                lambda ended: (
                    ended.cancelled() or print(f"{time.monotonic() - began_s:5.1f} s: {ended.result()[0]}")
                )
            )
        print(line(f"beside {pages} that explode", await waits_s(pool, seconds)))
        sizes = [f"{resident_bytes(pid) >> 20} MB" for pid in below(os.getpid())]
        print(
            f"processes: {', '.join(sizes)}; {sum(task.done() for task in tasks)} of the {pages} have their answer"
        )
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        pool.close()


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0)
    args = parser.parse_args()
    asyncio.run(run(args.pages, args.seconds))


if __name__ == "__main__":
    main()
