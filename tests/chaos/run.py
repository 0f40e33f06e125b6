"""One chaos run: faults injected into a deployment under load, and the checks after each of them."""

from __future__ import annotations

import asyncio
import math
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.chaos.crawl import Crawl, report
from tests.chaos.deployment import Deployment
from tests.chaos.failover import BehindAddress, InCluster, WithSentinel
from tests.chaos.ledger import Ledger
from tests.chaos.machine import Machine
from tests.chaos.observer import REPORTS, StoreObserver
from tests.chaos.replicas import Replicas
from tests.chaos.report import SPLIT_TOPICS, WHILE_READY, ChaosReport
from tests.chaos.resources import Resources
from tests.support.hang_limit import HANG_LIMIT_S

RATE = 140.0
FULL_RATE = 100
TIMEOUT_S = 10.0
QUERIED = 20  # of the newest and of the older articles, after each fault
READERS = 8
RESTART_LIMIT = 3  # times the first start, on a machine whose speed varies,
RESTART_SLACK_S = 10.0  # plus this: pauses between attempts, and the load of the log
Fault = Callable[[Any, int], Awaitable[None]]
DEPLOYMENTS: dict[str, Callable[[Path, str, random.Random], Deployment]] = {
    "replicas": Replicas,
    "machine": Machine,
    "sentinel": WithSentinel,
    "address": BehindAddress,
    "cluster": InCluster,
}


class Run:
    """One run: a deployment, its crawlers, and what they were answered."""

    def __init__(self, deployment: Deployment, result: ChaosReport, rate: float) -> None:
        self.deployment, self.result = deployment, result
        self.ledger = Ledger()
        self.crawl = Crawl(deployment, self.ledger, rate)
        self.observer = StoreObserver(lambda: deployment.store_url)
        self._full_rate = min(FULL_RATE, 0.75 * rate)
        self._kinds: list[str] = []  # of the fault during each topic
        self._read = 0
        self.resources = Resources(deployment, result.figures)
        self._start_s = 0.0
        self._slow_recoveries: list[str] = []
        self._losses: list[str] = []

    async def inject(self, faults: Mapping[str, Fault], count: int, longest_s: float) -> None:
        """Inject ``count`` faults within ``longest_s``, every kind equally often; then check everything."""
        deadline_s = time.monotonic() + longest_s
        self._start_s = self.deployment.start_s
        kinds = [kind for i in range(-(-count // len(faults))) for kind in self._shuffled(faults)][:count]
        async with self.crawl:
            await self._wait_for_full_rate()
            await self.resources.start()
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
        topic = len(self._kinds)
        self._kinds.append(f"{kind} {turn}")
        await self._post_reports(topic, range(third))
        await self._wait_for_full_rate()
        self.result.before[kind].append(self.ledger.acknowledged_within(1.0))
        reports = asyncio.create_task(self._post_reports(topic, range(third, 2 * third)))
        self.ledger.ready_since_s = math.inf
        self.ledger.take_longest_gap()
        await fault(self.deployment, turn)
        ended_s = time.monotonic()
        await self.deployment.until_ready()
        self.ledger.ready_since_s = time.monotonic()
        recovery_s = self.ledger.ready_since_s - ended_s
        self.result.seconds[kind].append(recovery_s)
        if recovery_s > RESTART_LIMIT * self._start_s + RESTART_SLACK_S:
            self._slow_recoveries.append(f"{kind}: ready after {recovery_s:.1f} s")
        await reports
        await self._post_reports(topic, range(2 * third, REPORTS))
        self.result.gaps[kind].append(self.ledger.take_longest_gap())
        lost = len(self.ledger.lost)
        await self._check_stored(self.ledger.take_unchecked())
        if len(self.ledger.lost) > lost:
            self._losses.append(f"{kind}: {len(self.ledger.lost) - lost} acknowledged articles lost")
        await self.observer.read_changes()
        await self.resources.check()
        self.crawl.raise_failures()

    async def _wait_for_full_rate(self) -> None:
        """Wait until the crawlers are at full rate; after ``TIMEOUT_S`` (on a slow machine) at any rate."""
        start_s = time.monotonic()
        while (acknowledged := self.ledger.acknowledged_within(1.0)) < self._full_rate:
            waited_s = time.monotonic() - start_s
            if waited_s > HANG_LIMIT_S or (acknowledged and waited_s > TIMEOUT_S):
                return
            await asyncio.sleep(0.02)
            self.crawl.raise_failures()

    async def _post_reports(self, topic: int, numbers: Sequence[int]) -> None:
        await asyncio.gather(*(self.crawl.post(report(topic, n), -1) for n in numbers))

    async def _check_stored(self, ids: Sequence[str]) -> None:
        """Compare ``ids`` with the store, and the newest of them and some older ones with the service."""
        await self.observer.reconnect()
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

    async def _final_check(self) -> None:
        await self._check_stored(list(self.ledger.acknowledged))
        await self.observer.wait_for_events(range(len(self._kinds)))
        streamed = await self.observer.stream_counts()
        ledger = self.ledger
        without_event = set(range(len(self._kinds))) - self.observer.topics_with_event()
        split = await self.observer.split_topics(without_event)
        lost = sorted(without_event - split)
        self.result.figures |= {
            "acknowledged": len(ledger.acknowledged),
            "articles read again": self._read,
            "refusals": ledger.refusals.total(),
            "lost": len(ledger.lost),
            "found with another verdict": len(ledger.changed),
            "doubled (groups with two new)": len(ledger.groups_with_several_new()),
            "groups without a new one": len(ledger.groups_without_new()),
            "topics": len(self._kinds),
            SPLIT_TOPICS: len(split),
            "events lost": len(lost),
            "events doubled": self.observer.repeated_events(),
            "articles streamed twice": sum(count - 1 for count in streamed.values()),
            "articles never streamed": len(ledger.acknowledged.keys() - streamed.keys()),
            "unexpected errors in the service's log": len(self.deployment.tracebacks()),
            "refusals without a reason": len(ledger.unexplained),
            "valid articles refused for good": len(ledger.final),
            WHILE_READY: len(ledger.while_ready),
            "faults not reported": len(self.deployment.unreported),
            "down for longer than a restart": len(self._slow_recoveries),
        }
        refused = [*ledger.unexplained, *ledger.final, *ledger.while_ready]
        self.result.details = [
            *self.deployment.unreported,
            *self._slow_recoveries,
            *self._losses,
            *[f"no event for topic {topic}, reported during fault: {self._kinds[topic]}" for topic in lost],
            *sorted({f"{r.status} {r.code}: {r.sentence[:200]}" for r in refused})[:20],
        ]
        self.result.left_out = dict(self.deployment.missing)
        await self.observer.store.close()


async def chaos(
    deployment_name: str,
    setting: str,
    faults: Mapping[str, Fault],
    count: int,
    *,
    seed: int = 1,
    rate: float = RATE,
    longest_s: float = math.inf,
) -> ChaosReport:
    """Inject ``count`` faults into a new deployment. ``setting``: one of those of the harness."""
    result = ChaosReport(f"{deployment_name}, {setting}")
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        new = DEPLOYMENTS[deployment_name]
        async with new(Path(directory), setting, random.Random(seed)) as deployment:
            run = Run(deployment, result, rate)
            possible = {kind: fault for kind, fault in faults.items() if kind not in deployment.missing}
            await run.inject(possible, count, longest_s)
            for record in deployment.tracebacks():
                _log(record)
    return result


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
