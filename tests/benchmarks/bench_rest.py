"""Memory of a service at rest: proportional set size of each of its processes after a few articles.

    scripts/bench rest [--articles 200] [--workers 1]

Starts the service with an embedded store, posts articles of drawn English and Chinese words, and waits until
the detector has read them. Pages that processes share are divided among them, so the total is what the
service takes from the machine. The processor time of the start is that of all its processes when it is ready.
"""

from __future__ import annotations

import argparse
import asyncio
import random

import aiohttp

from tests.benchmarks.bench_http import wait_for_detector
from tests.benchmarks.bench_service import running_service
from tests.support.processes import descendants, niceness, own_bytes, usage

ENGLISH = (
    "the council of the town voted on a new bridge after months of talks while workers waited for news from "
    "the harbour and the mayor said that costs had risen since spring"
)
CHINESE = "市议会星期三投票决定修建一座新的大桥工人们等待港口的消息市长表示成本自春天以来已经上升"
WORDS = 300


def main() -> None:
    """Print the memory of each process and of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--articles", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    asyncio.run(_measure(options.articles, options.workers))


async def _measure(articles: int, workers: int) -> None:
    draw = random.Random(1)
    async with running_service("--workers", str(workers)) as service, aiohttp.ClientSession() as session:
        start_s = usage(service.pid).cpu_s["service"]
        for number in range(articles):
            english = " ".join(draw.choices(ENGLISH.split(), k=WORDS))
            text = english if number % 2 else "".join(draw.choices(CHINESE, k=2 * WORDS))
            article = {"url": f"https://a.example/{number}", "source": "a.example", "text": text}
            async with session.post(f"{service.url}/v1/articles", json=article) as response:
                response.raise_for_status()
        await wait_for_detector(session, service.url)
        pids = [service.pid, *descendants(service.pid)]
        sizes = {pid: own_bytes(pid) for pid in pids}
        for pid in pids:
            print(f"process {pid}, nice value {niceness(pid)}: {sizes[pid] / 1e6:.0f} MB")
        print(f"processor time of the start: {start_s:.2f} s")
        print(f"all processes after {articles} articles: {sum(sizes.values()) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
