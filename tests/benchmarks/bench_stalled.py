"""Memory of the service while its store hangs and callers keep posting.

    python -m tests.benchmarks.bench_stalled [--callers 200] [--bytes 6000 2000000] [--seconds 15]

The embedded store of a service is stopped (SIGSTOP); each caller posts again as soon as it gets a response.
Prints the memory of the web process before, its maximum while the store hangs, and its maximum afterwards.
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
SAMPLE_S = 0.25
WORDS = [f"word{i}" for i in range(50_000)]


class Callers:
    """Callers that post articles of ``size_bytes`` until cancelled; ``responses`` counts by status."""

    def __init__(self, session: aiohttp.ClientSession, url: str, size_bytes: int) -> None:
        self.responses: Counter[int] = Counter()
        self._session, self._url = session, url
        self._rng = random.Random(1)
        self._texts = [" ".join(self._rng.choices(WORDS, k=size_bytes // 8))[:size_bytes] for _ in range(8)]

    async def post(self) -> None:
        """Post articles until cancelled, as one caller."""
        while True:
            article = {"id": f"{self._rng.random()}", "text": self._rng.choice(self._texts)}
            async with self._session.post(f"{self._url}/v1/articles", json=article) as response:
                await response.read()
                self.responses[response.status] += 1
            await asyncio.sleep(PAUSE_S)


async def largest_mb(pid: int, seconds: float) -> int:
    """Maximum resident memory of a process over ``seconds``."""
    sizes = []
    for _ in range(int(seconds / SAMPLE_S)):
        await asyncio.sleep(SAMPLE_S)
        sizes.append(resident_bytes(pid) >> 20)
    return max(sizes)


def store_process_of(pid: int) -> int:
    """Process id of the embedded store of a service."""
    (found,) = (p for p in descendants(pid) if b"valkey" in Path(f"/proc/{p}/cmdline").read_bytes())
    return found


async def run(callers: int, size_bytes: int, seconds: float) -> None:
    """Measure one article size and print one line."""
    pids: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as directory:
        async with (
            serving(pids=pids, data_dir=directory, log_level="ERROR") as url,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        ):
            (pid,) = pids
            store = store_process_of(pid)
            before = resident_bytes(pid) >> 20
            posting = Callers(session, url, size_bytes)
            os.kill(store, signal.SIGSTOP)
            tasks = [asyncio.create_task(posting.post()) for _ in range(callers)]
            try:
                hanging = await largest_mb(pid, seconds)
            finally:
                os.kill(store, signal.SIGCONT)
            after = await largest_mb(pid, AFTER_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    responses = ", ".join(f"{status}: {count}" for status, count in sorted(posting.responses.items()))
    print(
        f"{callers} callers of {size_bytes:,} bytes: {before} MB before, "
        f"at most {hanging} while the store hangs for {seconds:g} s, at most {after} afterwards; "
        f"responses {responses}",
        flush=True,
    )


def main() -> None:
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
