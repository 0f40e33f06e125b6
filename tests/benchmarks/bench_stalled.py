"""How large does a service become while its store hangs and callers keep posting?

A service on its embedded store, which is stopped (SIGSTOP) for a while; each caller posts again as soon as it is answered.
Printed: memory of the process that answers requests before, at most meanwhile, and at most while it works off what it took.

    python tests/benchmarks/bench_stalled.py [--callers 200] [--bytes 6000 2000000] [--seconds 15]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import tempfile
from collections import Counter
from pathlib import Path

import aiohttp

from tests.support.processes import descendants, resident_bytes
from tests.support.server_fixture import serving

PAUSE_S = 0.05
AFTER_S = 10.0
LOOK_S = 0.25
WORDS = [f"word{i}" for i in range(50_000)]


class Callers:
    """They post articles of so many bytes until they are cancelled. ``answers`` counts by status."""

    def __init__(self, session: aiohttp.ClientSession, url: str, size_bytes: int) -> None:
        self.answers: Counter[int] = Counter()
        self._session, self._url = session, url
        self._rng = random.Random(1)
        self._texts = [" ".join(self._rng.choices(WORDS, k=size_bytes // 8))[:size_bytes] for _ in range(8)]

    async def post(self) -> None:
        """One caller."""
        while True:
            article = {"id": f"{self._rng.random()}", "text": self._rng.choice(self._texts)}
            async with self._session.post(f"{self._url}/v1/articles", json=article) as answer:
                await answer.read()
                self.answers[answer.status] += 1
            await asyncio.sleep(PAUSE_S)


async def largest_mb(pid: int, seconds: float) -> int:
    """The most it has within that time."""
    sizes = []
    for _ in range(int(seconds / LOOK_S)):
        await asyncio.sleep(LOOK_S)
        sizes.append(resident_bytes(pid) >> 20)
    return max(sizes)


def server_of(pid: int) -> int:
    """The process of the embedded store."""
    (found,) = (p for p in descendants(pid) if b"valkey" in Path(f"/proc/{p}/cmdline").read_bytes())
    return found


async def run(callers: int, size_bytes: int, seconds: float) -> None:
    """One line of figures."""
    pids: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as directory:
        async with (
            serving(pids=pids, data_dir=directory, log_level="ERROR") as url,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        ):
            (pid,) = pids
            store = server_of(pid)
            before = resident_bytes(pid) >> 20
            asking = Callers(session, url, size_bytes)
            os.kill(store, signal.SIGSTOP)
            tasks = [asyncio.create_task(asking.post()) for _ in range(callers)]
            try:
                hanging = await largest_mb(pid, seconds)
            finally:
                os.kill(store, signal.SIGCONT)
            after = await largest_mb(pid, AFTER_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    answers = ", ".join(f"{status}: {count}" for status, count in sorted(asking.answers.items()))
    print(
        f"{callers} callers of {size_bytes:,} bytes: {before} MB before, at most {hanging} while the store hangs for "
        f"{seconds:g} s, at most {after} afterwards; answers {answers}",
        flush=True,
    )


def main() -> None:
    """One run for each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--callers", type=int, default=200)
    parser.add_argument("--bytes", type=int, nargs="+", default=[6_000, 2_000_000])
    parser.add_argument("--seconds", type=float, default=15.0)
    args = parser.parse_args()
    for size_bytes in args.bytes:
        asyncio.run(run(args.callers, size_bytes, args.seconds))


if __name__ == "__main__":
    main()
