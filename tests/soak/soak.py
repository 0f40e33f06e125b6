"""Soak test of 30 minutes that finds growth of memory, files, tasks and caches (``scripts/soak``).

One service with its own store gets all kinds of requests, also malformed and aborted ones, and every ten
seconds the reports of one event. Its clock runs 1440 times as fast as the real one (one day per minute), so
that the 4-hour window and the 7-day baseline of the detector, the retention of two days, and sealing,
compaction and removal of segments all occur several times. Its caches are full from the start
(``instrumented_service.py``). Memory, open files and connections, tasks, threads and cache entries are
sampled twice per second, at the start and at the end while the service is idle. Prints the slope per minute
with its 95 % interval over the last 2/3, and the idle counts before and after. Exit code 1 if memory rises
significantly by more than 1 % of its level in ten minutes, if an idle count did not return to its level, or
if no event fired.

``--leak 200`` verifies the test: the background process keeps that many bytes of each article, at ``--rate
12`` about 0.11 MB per minute, and the run must fail.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec
import redis.asyncio as redis

from aggregator.events.repository import INDEX_KEY
from aggregator.parent_death import parent_death_hook
from aggregator.runtime.event_loop import run_loop
from aggregator.store.embedded import EmbeddedServer
from tests.soak import instrumented_service
from tests.soak.traffic import Traffic
from tests.soak.trend import Trend, trend
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import open_files, resident_bytes, wait_for_background_process
from tests.support.server_fixture import ready
from tests.support.stores import direct_async_client

SPEED = 1440
RATE = 60.0
PERIOD_S = 0.5
TIMEOUT_S = 60.0
WARM_UP_SHARE = 1 / 3
MAX_RISE_PER_MINUTE = 0.001  # of the mean
MIN_MINUTES_FOR_SLOPES = 24  # the detector fills its baseline in seven; shorter runs only check idle counts
# Allowed growth of idle counts: pools start threads and open connections on demand.
SLACK = {"files": 6, "background_files": 6, "tasks": 2, "threads": 4, "store_connections": 4}


@dataclass(slots=True)
class SoakReport:
    """Samples by name, idle counts before and after, and responses by kind and status."""

    minutes: float
    at_s: list[float] = field(default_factory=list)
    samples: dict[str, list[float]] = field(default_factory=dict)
    idle: list[dict[str, float]] = field(default_factory=list)
    responses: dict[str, int] = field(default_factory=dict)

    def trends(self) -> dict[str, Trend]:
        """Trend of every series, without its first third."""
        start = int(len(self.at_s) * WARM_UP_SHARE)
        return {name: trend(self.at_s[start:], values[start:]) for name, values in self.samples.items()}

    def failures(self) -> list[str]:
        """One sentence per violated limit."""
        before, after = self.idle[0], self.idle[-1]
        found = [
            f"{name}: {before[name]:g} when idle before, {after[name]:g} after"
            for name, slack in SLACK.items()
            if after[name] > before[name] + slack
        ]
        if self.minutes >= MIN_MINUTES_FOR_SLOPES:
            trends = self.trends()
            found += [
                f"{name} rises by at least {trends[name].min_rise_per_minute:.0f} per minute"
                for name in ("memory_kb", "background_memory_kb")
                if trends[name].min_rise_per_minute > MAX_RISE_PER_MINUTE * trends[name].mean
            ]
        if not after["events"]:
            found.append("the reports made no event")
        failed = {kind: n for kind, n in self.responses.items() if kind.split()[-1] in ("500", "503")}
        return found + ([f"refused or failed: {failed}"] if failed else [])

    def lines(self) -> list[str]:
        """Human-readable summary."""
        by_kind = ", ".join(f"{kind}: {count}" for kind, count in sorted(self.responses.items()))
        lines = [f"{self.minutes:g} minutes, {sum(self.responses.values())} requests ({by_kind})"]
        for name, line in self.trends().items():
            idle = " -> ".join(f"{counts[name]:g}" for counts in self.idle)
            lines.append(
                f"  {name:20} mean {line.mean:10.1f}, "
                f"slope {line.per_minute:+8.2f} +- {line.margin:.2f} per minute; idle {idle}"
            )
        return lines


class ResourceSampler:
    """Reads memory, files, tasks and connections of a service and its store."""

    def __init__(self, pid: int, counts: Path, store: redis.Redis) -> None:
        self._pid, self._counts, self._store = pid, counts, store

    async def sample(self) -> dict[str, float]:
        """Current values by name."""
        info = await self._store.info()
        own = json.loads(self._counts.read_text().splitlines()[-1])
        keys = max(1, await self._store.dbsize())
        background = await wait_for_background_process(self._pid)
        events = cast(bytes | None, await self._store.get(INDEX_KEY))
        return {
            "memory_kb": resident_bytes(self._pid) / 1024,
            "background_memory_kb": resident_bytes(background) / 1024,
            "files": open_files(self._pid),
            "background_files": open_files(background),
            "tasks": own["tasks"],
            "threads": own["threads"],
            "cached": own["cached"],
            "store_connections": info["connected_clients"],
            "store_bytes_per_key": info["used_memory"] / keys,
            "events": len(msgspec.msgpack.decode(events)) if events else 0,
        }

    async def until_idle(self, counts: dict[str, float] | None = None) -> dict[str, float]:
        """Values after at least 2 s, as soon as they are down to ``counts``, or after ``TIMEOUT_S``."""
        deadline_s = time.monotonic() + TIMEOUT_S
        await asyncio.sleep(2.0)
        while True:
            now = await self.sample()
            if counts is None or all(now[name] <= counts[name] + slack for name, slack in SLACK.items()):
                return now
            if time.monotonic() > deadline_s:
                return now
            await asyncio.sleep(PERIOD_S)


async def soak(
    minutes: float,
    *,
    rate: float = RATE,
    speed: float = SPEED,
    leak: int = 0,
    log: Callable[[str], None] = lambda line: None,
) -> SoakReport:
    """Run a service under ``rate`` requests/s. ``leak``: bytes that it leaks per article.

    ``speed``: of the service's clock. The 18 reports of an event must arrive within 4 h of that clock.
    """
    report = SoakReport(minutes)
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        directory = Path(name)
        counts = directory / "counts"
        with EmbeddedServer(directory / "store") as store:
            process = await _serve(counts, store.url, speed, leak)
            try:
                url = await ready(process)
                async with direct_async_client(store.url) as direct:
                    sampler = ResourceSampler(process.pid, counts, direct)
                    await _observe(report, sampler, Traffic(url, rate), log)
            finally:
                if process.returncode is None:
                    process.terminate()
                await process.communicate()
    return report


async def _serve(counts: Path, store_url: str, speed: float, leak: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        instrumented_service.__file__,
        str(counts),
        str(speed),
        "serve",
        "--port=0",
        f"--store-url={store_url}",
        "--retention-days=2",
        "--detector-interval-seconds=0.5",
        "--request-timeout-seconds=60",  # a soak looks for leaks, also on a slow machine
        "--log-level=ERROR",
        stdout=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),  # the same imports as here
            **({instrumented_service.LEAK_VARIABLE: str(leak)} if leak else {}),
        },
        preexec_fn=parent_death_hook(signal.SIGTERM),
    )


async def _observe(
    report: SoakReport, sampler: ResourceSampler, traffic: Traffic, log: Callable[[str], None]
) -> None:
    await _warm_up(sampler, traffic)
    report.idle.append(await sampler.until_idle())
    started_s = time.monotonic()
    running = asyncio.create_task(traffic.run())
    while (at_s := time.monotonic() - started_s) < 60 * report.minutes and not running.done():
        values = await sampler.sample()
        report.at_s.append(at_s)
        for name, value in values.items():
            report.samples.setdefault(name, []).append(value)
        if len(report.at_s) % 120 == 0:
            log(f"{at_s / 60:.0f} min: " + ", ".join(f"{name} {value:.0f}" for name, value in values.items()))
        await asyncio.sleep(PERIOD_S)
    traffic.stop()
    await running
    report.responses = dict(traffic.responses)
    report.idle.append(await sampler.until_idle(report.idle[0]))


async def _warm_up(sampler: ResourceSampler, traffic: Traffic) -> None:
    """Run traffic for 4 s, and until the background process has stored the event of its first topic.

    Opens connections and threads, and loads everything that is loaded once, in both processes.
    """
    warming = Traffic(traffic._url, traffic._rate, seed=2)
    running = asyncio.create_task(warming.run())
    await asyncio.sleep(4.0)
    async with asyncio.timeout(HANG_LIMIT_S):
        while not (await sampler.sample())["events"]:  # noqa: ASYNC110  of another process
            await asyncio.sleep(PERIOD_S)
    warming.stop()
    await running


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Exit code 1 if a limit was violated."""
    parser = argparse.ArgumentParser(
        prog="scripts/soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=RATE, help="requests per second")
    parser.add_argument("--leak", type=int, default=0, help="bytes to leak per article; the run must fail")
    args = parser.parse_args()
    report: SoakReport = run_loop(soak(args.minutes, rate=args.rate, leak=args.leak, log=_log))
    print("\n".join(report.lines()))
    failures = report.failures()
    print("FAILED: " + "; ".join(failures) if failures else "nothing grows")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
