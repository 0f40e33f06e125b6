"""Fault injection against a deployment of two replicas under load (``scripts/chaos``).

Two replicas of the service share one store through a proxy while crawlers post groups of three near-copies
concurrently, at 100 articles/s or more. After each fault, every article acknowledged since the previous one
must be in the store with the verdict that was answered, and the service must return it for the newest of them
and some older ones; at the end all are read again. Each group has exactly one new article. Each topic with
more than fifteen reports, posted before, during and after a fault, becomes exactly one event that fires once.
Each article is exactly once in the article stream. Three runs, each on a new store:

    always      all faults in turn, appendfsync always: any loss is a failure (exit code 1)
    everysec    the store killed and its log torn, appendfsync everysec: losses are counted
    power       the store killed and the end of its log cut off, with acknowledged articles: losses are
                counted
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aggregator.runtime.event_loop import run_loop
from aggregator.store.redis import open_redis_store
from tests.chaos.crawl import Crawl, report
from tests.chaos.deployment import Deployment
from tests.chaos.faults import FAULTS, POWER_LOSS, Fault
from tests.chaos.ledger import Ledger
from tests.chaos.observer import REPORTS, StoreObserver
from tests.support.processes import open_files, resident_bytes

RATE = 140.0
FULL_RATE = 100
TIMEOUT_S = 10.0
QUERIED = 20  # of the newest and of the older articles, after each fault
READERS = 8
SLACK_BYTES = 128 * 2**20
SLACK_REPLY_BYTES = 16 * 2**20  # buffers of the store for its clients
SLACK_DESCRIPTORS = 100
EVERYSEC = ("store killed", "log torn")


LARGEST = "largest replica after a fault, MB"
MEMORY = "faults after which a replica's memory stayed high"
DESCRIPTORS = "faults after which a replica's open files stayed high"
REPLY_BUFFERS = "faults after which the store's reply buffers stayed high"


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """Memory and open files of the largest process of the replicas, and the reply buffers of the store."""

    resident_bytes: int
    descriptors: int
    reply_buffer_bytes: int


@dataclass(slots=True)
class ChaosReport:
    """Result of one run.

    before   kind -> articles acknowledged within 1 s before each of its faults
    seconds  kind -> time from each fault until the deployment was ready again
    """

    setting: str
    before: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    figures: dict[str, int] = field(default_factory=dict)

    @property
    def failures(self) -> dict[str, int]:
        """Figures that should be zero and are not."""
        informative = ("acknowledged", "refusals", "topics", "articles read again", LARGEST)
        return {name: count for name, count in self.figures.items() if count and name not in informative}

    def lines(self) -> list[str]:
        """Human-readable summary."""
        lines = [f"{self.setting}: {sum(map(len, self.before.values()))} faults"]
        for kind, counts in self.before.items():
            recovery_s = statistics.median(self.seconds[kind])
            lines.append(
                f"  {kind:18} {len(counts):3} times, acknowledged within 1 s before: least {min(counts)}, "
                f"median {statistics.median(counts):g}; recovered after {recovery_s:.1f} s (median)"
            )
        return lines + [f"  {name}: {count}" for name, count in self.figures.items()]


class Run:
    """One run: a deployment, its crawlers, and what they were answered."""

    def __init__(self, deployment: Deployment, result: ChaosReport, rate: float) -> None:
        self.deployment, self.result = deployment, result
        self.ledger = Ledger()
        self.crawl = Crawl(deployment, self.ledger, rate)
        self.observer = StoreObserver(open_redis_store(deployment.store.url))
        self._full_rate = min(FULL_RATE, 0.75 * rate)
        self._topics = 0
        self._read = 0
        self._usual: ResourceUsage | None = None

    async def inject(self, faults: Mapping[str, Fault], count: int, longest_s: float) -> None:
        """Inject ``count`` faults within ``longest_s``, every kind equally often; then check everything."""
        deadline_s = time.monotonic() + longest_s
        kinds = [kind for i in range(-(-count // len(faults))) for kind in self._shuffled(faults)][:count]
        async with self.crawl:
            await self._wait_for_full_rate()
            self._usual = await self._resource_usage()
            for number, kind in enumerate(kinds):
                if time.monotonic() > deadline_s:
                    break
                await self._inject_one(kind, faults[kind], turn=kinds[:number].count(kind))
                if sys.stderr.isatty() or number % 10 == 9:
                    _log(f"{self.result.setting}: {number + 1} of {count} faults")
        await self.deployment.until_ready()
        if sys.stderr.isatty() or count >= 10:
            _log(f"{self.result.setting}: reading all articles again")
        await self._final_check()

    def _shuffled(self, faults: Mapping[str, Fault]) -> list[str]:
        return self.deployment.rng.sample(list(faults), len(faults))

    async def _inject_one(self, kind: str, fault: Fault, turn: int) -> None:
        third = REPORTS // 3
        topic, self._topics = self._topics, self._topics + 1
        await self._post_reports(topic, range(third))
        await self._wait_for_full_rate()
        started_s = time.monotonic()
        self.result.before[kind].append(self.ledger.acknowledged_within(1.0))
        reports = asyncio.create_task(self._post_reports(topic, range(third, 2 * third)))
        await fault(self.deployment, turn)
        await self.deployment.until_ready()
        await reports
        self.result.seconds[kind].append(time.monotonic() - started_s)
        await self._post_reports(topic, range(2 * third, REPORTS))
        await self._check_stored(self.ledger.take_unchecked())
        await self.observer.read_changes()
        await self._check_resources()
        self.crawl.raise_failures()

    async def _wait_for_full_rate(self) -> None:
        """Wait until the crawlers are at full rate, at most ``TIMEOUT_S`` (on a slow machine)."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while self.ledger.acknowledged_within(1.0) < self._full_rate and time.monotonic() < deadline_s:
            await asyncio.sleep(0.02)
            self.crawl.raise_failures()

    async def _post_reports(self, topic: int, numbers: Sequence[int]) -> None:
        await asyncio.gather(*(self.crawl.post(report(topic, n), -1) for n in numbers))

    async def _check_stored(self, ids: Sequence[str]) -> None:
        """Compare ``ids`` with the store, and the newest of them and some older ones with the service."""
        stored = await self.observer.verdicts(ids)
        for id_ in ids:
            self.ledger.check(id_, stored.get(id_))
        older = self.deployment.rng.sample(
            list(self.ledger.acknowledged), min(QUERIED, len(self.ledger.acknowledged))
        )
        waiting = [*ids[-QUERIED:], *older]
        self._read += len(ids) + len(waiting)

        async def query() -> None:
            while waiting:
                id_ = waiting.pop()
                self.ledger.check(id_, await self.deployment.verdict_of(id_))

        await asyncio.gather(*(query() for _ in range(READERS)))

    async def _resource_usage(self) -> ResourceUsage:
        pids = [pid for replica in self.deployment.replicas for pid in await replica.processes()]
        memory = await self.deployment.direct.info("memory")
        return ResourceUsage(
            max(map(resident_bytes, pids)),
            max(map(open_files, pids)),
            memory["mem_clients_normal"],
        )

    async def _check_resources(self) -> None:
        """Compare memory and open files with those at the start; the detector's baseline grows meanwhile."""
        now, usual, figures = await self._resource_usage(), self._usual, self.result.figures
        assert usual is not None
        grown = {
            MEMORY: now.resident_bytes > 2 * usual.resident_bytes + SLACK_BYTES,
            DESCRIPTORS: now.descriptors > usual.descriptors + SLACK_DESCRIPTORS,
            REPLY_BUFFERS: now.reply_buffer_bytes > usual.reply_buffer_bytes + SLACK_REPLY_BYTES,
        }
        for name, is_grown in grown.items():
            figures[name] = figures.get(name, 0) + is_grown
        figures[LARGEST] = max(figures.get(LARGEST, 0), now.resident_bytes >> 20)

    async def _final_check(self) -> None:
        await self._check_stored(list(self.ledger.acknowledged))
        await self.observer.wait_for_events(range(self._topics))
        streamed = await self.observer.stream_counts()
        ledger = self.ledger
        self.result.figures |= {
            "acknowledged": len(ledger.acknowledged),
            "articles read again": self._read,
            "refusals": ledger.refusals,
            "lost": len(ledger.lost),
            "found with another verdict": len(ledger.changed),
            "doubled (groups with two new)": len(ledger.groups_with_several_new()),
            "groups without a new one": len(ledger.groups_without_new()),
            "topics": self._topics,
            "events lost": len(set(range(self._topics)) - self.observer.topics_with_event()),
            "events doubled": self.observer.repeated_events(),
            "articles streamed twice": sum(count - 1 for count in streamed.values()),
            "articles never streamed": len(ledger.acknowledged.keys() - streamed.keys()),
            "unexpected errors in the service's log": len(self.deployment.tracebacks()),
        }
        await self.observer.store.close()


async def chaos(
    setting: str,
    faults: Mapping[str, Fault],
    count: int,
    *,
    seed: int = 1,
    rate: float = RATE,
    longest_s: float = math.inf,
) -> ChaosReport:
    """Inject ``count`` faults into a new deployment. ``setting``: always, everysec or power."""
    result = ChaosReport(setting)
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        appendfsync = "everysec" if setting == "everysec" else "always"
        async with Deployment(Path(directory), appendfsync, random.Random(seed)) as deployment:
            run = Run(deployment, result, rate)
            await run.inject(faults, count, longest_s)
            for record in deployment.tracebacks():
                _log(record)
    return result


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def run_all(args: argparse.Namespace) -> list[ChaosReport]:
    """Run the selected runs and print their summaries."""
    selected = {kind: fault for kind, fault in FAULTS.items() if not args.kinds or kind in args.kinds}
    runs: list[tuple[str, Mapping[str, Fault], int]] = [("always", selected, args.faults)]
    runs.append(("everysec", {kind: FAULTS[kind] for kind in EVERYSEC}, args.everysec))
    runs.append(("power", POWER_LOSS, args.power))
    results = []
    for run in runs:
        if run[2]:
            results.append(await chaos(*run, seed=args.seed, rate=args.rate, longest_s=60 * args.minutes))
            print("\n".join(results[-1].lines()), flush=True)
    return results


def main() -> int:
    """Exit code 1 if an invariant was violated under ``always``."""
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--faults", type=int, default=300, help="faults of the first run (appendfsync always), kinds in turn"
    )
    parser.add_argument("--everysec", type=int, default=20, metavar="FAULTS", help="faults of the second run")
    parser.add_argument("--power", type=int, default=10, metavar="FAULTS", help="faults of the third run")
    parser.add_argument(
        "--kinds", nargs="*", choices=list(FAULTS), help="kinds of faults of the first run; default: all"
    )
    parser.add_argument("--rate", type=float, default=RATE, help="articles posted per second")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="time limit for the faults of each run"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file, too")
    args = parser.parse_args()
    results: list[ChaosReport] = run_loop(run_all(args))
    if args.json:
        args.json.write_text(json.dumps([_as_dict(result) for result in results], indent=1))
    failures = results[0].failures if results and results[0].setting == "always" else {}
    if failures:
        print(f"FAILED: {failures}")
    return int(bool(failures))


def _as_dict(result: ChaosReport) -> dict[str, Any]:
    return {
        "setting": result.setting,
        "before": dict(result.before),
        "seconds": dict(result.seconds),
        "figures": result.figures,
    }


if __name__ == "__main__":
    sys.exit(main())
