"""A service at work for half an hour: does anything grow that should not? Run by ``scripts/soak``.

One service on a store of its own gets all kinds of requests, broken ones among them, and every ten seconds the reports
of an event. Its clock runs 1440 times as fast as the real one: a day a minute, so that the four hours of the detector,
its week of routine, the retention of two days and the sealing, compaction and dropping of segments all come round several
times. Its caches of words are full from the start (``observed.py``). Memory, open files and connections, tasks, threads and
entries in caches are sampled twice a second, first and last while nobody asks. Printed: slope per minute with its 95 %
interval over the last two thirds, and the idle counts before and after. Exit code 1 when memory surely rises by more than a
hundredth of its level in ten minutes, when an idle count did not come back, or when no event fired.

That it would find a leak can be tried: with ``--leak 200`` the scheduler keeps so many bytes of each article, at ``--rate 12``
about a ninth of a megabyte a minute, and the run has to fail.

The store's own memory is told per article: it keeps records by the real clock, so it has to grow here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import redis.asyncio as redis

from aggregator.events.repository import INDEX_KEY
from aggregator.runtime.event_loop import run_loop
from aggregator.store.embedded import EmbeddedServer, _parent_death_hook
from tests.soak import observed
from tests.soak.traffic import Traffic
from tests.soak.trend import Trend, trend
from tests.support.processes import open_files, resident_bytes, wait_for_background_process
from tests.support.server_fixture import ready

SPEED = 1440
RATE = 60.0
PERIOD_S = 0.5
PATIENCE_S = 60.0
WARM_UP_SHARE = 1 / 3
STEEPEST_PER_MINUTE = 0.001  # of the level
LONG_MINUTES = 24  # the detector fills its week in seven; a shorter run says nothing of slopes, only of leaks
# Pools open what they need when they first need it: threads, connections to the store.
SLACK = {"files": 6, "scheduler_files": 6, "tasks": 2, "threads": 4, "store_connections": 4}


@dataclass(slots=True)
class Account:
    """Samples by name, the counts while idle before and after, and what was asked."""

    minutes: float
    at_s: list[float] = field(default_factory=list)
    samples: dict[str, list[float]] = field(default_factory=dict)
    idle: list[dict[str, float]] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)

    def trends(self) -> dict[str, Trend]:
        """Of every series, without its first third."""
        start = int(len(self.at_s) * WARM_UP_SHARE)
        return {name: trend(self.at_s[start:], values[start:]) for name, values in self.samples.items()}

    def failures(self) -> list[str]:
        """One sentence for each thing that grew."""
        before, after = self.idle[0], self.idle[-1]
        found = [
            f"{name}: {before[name]:g} when idle before, {after[name]:g} after"
            for name, slack in SLACK.items()
            if after[name] > before[name] + slack
        ]
        if self.minutes >= LONG_MINUTES:
            trends = self.trends()
            found += [
                f"{name} rises by at least {trends[name].surely_rises_by:.0f} a minute"
                for name in ("memory_kb", "scheduler_memory_kb")
                if trends[name].surely_rises_by > STEEPEST_PER_MINUTE * trends[name].mean
            ]
        if not after["events"]:
            found.append("no event came of the reports")
        wrong = {kind: n for kind, n in self.answers.items() if kind.split()[-1] in ("500", "503")}
        return found + ([f"refused or failed: {wrong}"] if wrong else [])

    def lines(self) -> list[str]:
        """For people."""
        asked = ", ".join(f"{kind}: {count}" for kind, count in sorted(self.answers.items()))
        shown = [f"{self.minutes:g} minutes, {sum(self.answers.values())} requests ({asked})"]
        for name, line in self.trends().items():
            idle = " -> ".join(f"{counts[name]:g}" for counts in self.idle)
            shown.append(
                f"  {name:18} mean {line.mean:10.1f}, slope {line.per_minute:+8.2f} +- {line.margin:.2f} a minute; "
                f"idle {idle}"
            )
        return shown


class Watch:
    """Reads what a process and its store have open."""

    def __init__(self, pid: int, counts: Path, store: redis.Redis) -> None:
        self._pid, self._counts, self._store = pid, counts, store

    async def look(self) -> dict[str, float]:
        """All of it, now."""
        told = await self._store.info()
        own = json.loads(self._counts.read_text().splitlines()[-1])
        articles = max(1, await self._store.dbsize())
        scheduler = await wait_for_background_process(self._pid)
        events = await self._store.get(INDEX_KEY)
        return {
            "memory_kb": resident_bytes(self._pid) / 1024,
            "scheduler_memory_kb": resident_bytes(scheduler) / 1024,
            "files": open_files(self._pid),
            "scheduler_files": open_files(scheduler),
            "tasks": own["tasks"],
            "threads": own["threads"],
            "cached": own["cached"],
            "store_connections": told["connected_clients"],
            "store_bytes_per_key": told["used_memory"] / articles,
            "events": len(msgspec.msgpack.decode(events)) if events else 0,
        }

    async def until_idle(self, counts: dict[str, float] | None = None) -> dict[str, float]:
        """What is open once it has come down to ``counts``, or after patience; without: after two calm seconds."""
        deadline_s = time.monotonic() + PATIENCE_S
        await asyncio.sleep(2.0)
        while True:
            now = await self.look()
            if counts is None or all(now[name] <= counts[name] + slack for name, slack in SLACK.items()):
                return now
            if time.monotonic() > deadline_s:
                return now
            await asyncio.sleep(PERIOD_S)


async def endure(
    minutes: float, *, rate: float = RATE, leak: int = 0, tell: Callable[[str], None] = lambda line: None
) -> Account:
    """Start, wait, load, wait, stop; the account of it. ``leak``: bytes that the scheduler keeps of each article."""
    account = Account(minutes)
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        directory = Path(name)
        counts = directory / "counts"
        with EmbeddedServer(directory / "store") as store:
            process = await _serve(counts, store.url, leak)
            try:
                url = await ready(process)
                async with redis.Redis.from_url(store.url) as direct:
                    await _observe(account, Watch(process.pid, counts, direct), Traffic(url, rate), tell)
            finally:
                if process.returncode is None:
                    process.terminate()
                await process.communicate()
    return account


async def _serve(counts: Path, store_url: str, leak: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        observed.__file__,
        str(counts),
        str(SPEED),
        "serve",
        "--port=0",
        f"--store-url={store_url}",
        "--retention-days=2",
        "--detector-interval-seconds=0.5",
        "--log-level=ERROR",
        stdout=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),  # it imports what we do
            **({observed.LEAK: str(leak)} if leak else {}),
        },
        preexec_fn=_parent_death_hook(),
    )


async def _observe(account: Account, watch: Watch, traffic: Traffic, tell: Callable[[str], None]) -> None:
    await _warm_up(traffic)
    account.idle.append(await watch.until_idle())
    started_s = time.monotonic()
    running = asyncio.create_task(traffic.run())
    while (at_s := time.monotonic() - started_s) < 60 * account.minutes and not running.done():
        seen = await watch.look()
        account.at_s.append(at_s)
        for name, value in seen.items():
            account.samples.setdefault(name, []).append(value)
        if len(account.at_s) % 120 == 0:
            tell(f"{at_s / 60:.0f} min: " + ", ".join(f"{name} {value:.0f}" for name, value in seen.items()))
        await asyncio.sleep(PERIOD_S)
    traffic.stop()
    await running
    account.answers = dict(traffic.answers)
    account.idle.append(await watch.until_idle(account.idle[0]))


async def _warm_up(traffic: Traffic) -> None:
    """Whatever is opened or loaded once is so now: connections, threads, templates, what words an event's headlines have."""
    warming = Traffic(traffic._url, traffic._rate, seed=2)
    running = asyncio.create_task(warming.run())
    await asyncio.sleep(4.0)
    warming.stop()
    await running


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Exit code 1 when something grew."""
    parser = argparse.ArgumentParser(
        prog="scripts/soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=RATE, help="requests a second")
    parser.add_argument(
        "--leak", type=int, default=0, help="bytes of each article to keep, which must be found"
    )
    args = parser.parse_args()
    account: Account = run_loop(endure(args.minutes, rate=args.rate, leak=args.leak, tell=_tell))
    print("\n".join(account.lines()))
    failures = account.failures()
    print("FAILED: " + "; ".join(failures) if failures else "nothing grows")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
