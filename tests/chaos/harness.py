"""Breaks a small site in every way it can, and keeps account of what was acknowledged. Run by ``scripts/chaos``.

Two replicas of the service on one store, through a proxy, while crawlers post groups of three near-copies at the
same moment, at 100 articles a second or more. After each fault every article acknowledged since the last one must
stand in the store with the verdict that was answered, the service must answer it for the newest of them and some older
ones; at the end all of them are read again. No group has two that are new, none has none; each matter with more than
fifteen reports, posted before, during and after a fault, becomes one event that is told once; each article stands once
in the article stream. Three runs, each on a fresh store:

    always      all kinds in turn, appendfsync always: any loss is a failure (exit code 1)
    everysec    the store killed and its log torn, appendfsync everysec: losses are counted
    power       the store dies and the end of its log is cut off, acknowledged articles with it: losses are counted
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
from tests.chaos.faults import FAULTS, POWER_LOSS, Fault
from tests.chaos.ledger import Ledger
from tests.chaos.newsroom_site import Site
from tests.chaos.observer import REPORTS, Witness
from tests.support.processes import open_files, resident_bytes

RATE = 140.0
ENOUGH = 100
PATIENCE_S = 10.0
ASKED = 20
READERS = 8
SLACK_BYTES = 128 * 2**20
SLACK_ANSWERS_BYTES = 16 * 2**20  # that the store holds for those who ask, in all
SLACK_DESCRIPTORS = 100
EVERYSEC = ("store killed", "log torn")


LARGEST = "largest replica after a fault, MB"
MEMORY = "faults after which a replica's memory did not come back"
DESCRIPTORS = "faults after which a replica's connections did not come back"
ANSWERS = "faults after which the store's memory for answers did not come back"


@dataclass(frozen=True, slots=True)
class Size:
    """The largest process of a replica, in memory and open files, and what the store holds for its clients."""

    resident_bytes: int
    descriptors: int
    answers_bytes: int


@dataclass(slots=True)
class Account:
    """What one run came to. ``before``: kind -> articles acknowledged within 1 s before each of its faults."""

    setting: str
    before: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    figures: dict[str, int] = field(default_factory=dict)

    @property
    def failures(self) -> dict[str, int]:
        """What should be zero and is not."""
        kept = ("acknowledged", "refusals", "matters", "articles read again", LARGEST)
        return {name: count for name, count in self.figures.items() if count and name not in kept}

    def lines(self) -> list[str]:
        """For people."""
        shown = [f"{self.setting}: {sum(map(len, self.before.values()))} faults"]
        for kind, counts in self.before.items():
            took = statistics.median(self.seconds[kind])
            shown.append(
                f"  {kind:18} {len(counts):3} times, acknowledged within 1 s before: least {min(counts)}, "
                f"median {statistics.median(counts):g}; whole again after {took:.1f} s (median)"
            )
        return shown + [f"  {name}: {count}" for name, count in self.figures.items()]


class Run:
    """One site, one ledger."""

    def __init__(self, site: Site, account: Account, rate: float) -> None:
        self.site, self.account = site, account
        self.ledger = Ledger()
        self.crawl = Crawl(site, self.ledger, rate)
        self.witness = Witness(open_redis_store(site.store.url))
        self._full_speed = min(ENOUGH, 0.75 * rate)
        self._matters = 0
        self._read = 0
        self._usual: Size | None = None

    async def through(self, faults: Mapping[str, Fault], count: int, longest_s: float) -> None:
        """So many faults, or what time allows, every kind as often as any other; then the final account."""
        deadline_s = time.monotonic() + longest_s
        kinds = [kind for i in range(-(-count // len(faults))) for kind in self._shuffled(faults)][:count]
        async with self.crawl:
            await self._enough()
            self._usual = await self._size()
            for number, kind in enumerate(kinds):
                if time.monotonic() > deadline_s:
                    break
                await self._one(kind, faults[kind], turn=kinds[:number].count(kind))
                if sys.stderr.isatty() or number % 10 == 9:
                    print(
                        f"{self.account.setting}: {number + 1} of {count} faults", file=sys.stderr, flush=True
                    )
        await self.site.until_ready()
        if sys.stderr.isatty() or count >= 10:
            print(f"{self.account.setting}: reading all again", file=sys.stderr, flush=True)
        await self._close()

    def _shuffled(self, faults: Mapping[str, Fault]) -> list[str]:
        return self.site.rng.sample(list(faults), len(faults))

    async def _one(self, kind: str, fault: Fault, turn: int) -> None:
        third = REPORTS // 3
        matter, self._matters = self._matters, self._matters + 1
        await self._reports(matter, range(third))
        await self._enough()
        started_s = time.monotonic()
        self.account.before[kind].append(self.ledger.within(1.0))
        meanwhile = asyncio.create_task(self._reports(matter, range(third, 2 * third)))
        await fault(self.site, turn)
        await self.site.until_ready()
        await meanwhile
        self.account.seconds[kind].append(time.monotonic() - started_s)
        await self._reports(matter, range(2 * third, REPORTS))
        await self._audit(self.ledger.unread())
        await self.witness.read_on()
        await self._compare()
        self.crawl.watch()

    async def _enough(self) -> None:
        """Wait until the crawlers are at full speed again; a machine that is too slow goes on as it is."""
        deadline_s = time.monotonic() + PATIENCE_S
        while self.ledger.within(1.0) < self._full_speed and time.monotonic() < deadline_s:
            await asyncio.sleep(0.02)
            self.crawl.watch()

    async def _reports(self, matter: int, numbers: Sequence[int]) -> None:
        await asyncio.gather(*(self.crawl.post(report(matter, n), -1) for n in numbers))

    async def _audit(self, ids: Sequence[str]) -> None:
        """All of ``ids`` in the store itself; the newest of them, and some older ones, by asking the service."""
        stored = await self.witness.verdicts(ids)
        for id_ in ids:
            self.ledger.found(id_, stored.get(id_))
        older = self.site.rng.sample(
            list(self.ledger.acknowledged), min(ASKED, len(self.ledger.acknowledged))
        )
        waiting = [*ids[-ASKED:], *older]
        self._read += len(ids) + len(waiting)

        async def ask() -> None:
            while waiting:
                id_ = waiting.pop()
                self.ledger.found(id_, await self.site.verdict_of(id_))

        await asyncio.gather(*(ask() for _ in range(READERS)))

    async def _size(self) -> Size:
        pids = [pid for replica in self.site.replicas for pid in await replica.processes()]
        told = await self.site.direct.info("memory")
        return Size(
            max(map(resident_bytes, pids)),
            max(map(open_files, pids)),
            told["mem_clients_normal"],
        )

    async def _compare(self) -> None:
        """Memory and connections after a fault beside those at the start; the detector's past grows meanwhile."""
        now, usual, figures = await self._size(), self._usual, self.account.figures
        assert usual is not None
        grown = {
            MEMORY: now.resident_bytes > 2 * usual.resident_bytes + SLACK_BYTES,
            DESCRIPTORS: now.descriptors > usual.descriptors + SLACK_DESCRIPTORS,
            ANSWERS: now.answers_bytes > usual.answers_bytes + SLACK_ANSWERS_BYTES,
        }
        for name, is_grown in grown.items():
            figures[name] = figures.get(name, 0) + is_grown
        figures[LARGEST] = max(figures.get(LARGEST, 0), now.resident_bytes >> 20)

    async def _close(self) -> None:
        await self._audit(list(self.ledger.acknowledged))
        await self.witness.settle(range(self._matters))
        announced = await self.witness.announced()
        ledger = self.ledger
        self.account.figures |= {
            "acknowledged": len(ledger.acknowledged),
            "articles read again": self._read,
            "refusals": ledger.refusals,
            "lost": len(ledger.lost),
            "found with another verdict": len(ledger.changed),
            "doubled (groups with two new)": len(ledger.doubled()),
            "groups without a new one": len(ledger.missing()),
            "matters": self._matters,
            "events lost": len(set(range(self._matters)) - self.witness.told()),
            "events doubled": self.witness.doubled(),
            "articles announced twice": sum(count - 1 for count in announced.values()),
            "articles never announced": len(ledger.acknowledged.keys() - announced.keys()),
            "unexpected errors in the service's log": len(self.site.tracebacks()),
        }
        await self.witness.store.close()


async def chaos(
    setting: str,
    faults: Mapping[str, Fault],
    count: int,
    *,
    seed: int = 1,
    rate: float = RATE,
    longest_s: float = math.inf,
) -> Account:
    """A fresh site, so many faults, its account. ``setting``: always, everysec or power."""
    account = Account(setting)
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        appendfsync = "everysec" if setting == "everysec" else "always"
        async with Site(Path(directory), appendfsync, random.Random(seed)) as site:
            run = Run(site, account, rate)
            await run.through(faults, count, longest_s)
            for told in site.tracebacks():
                print(told, file=sys.stderr)
    return account


async def everything(args: argparse.Namespace) -> list[Account]:
    """The runs that were asked for."""
    chosen = {kind: fault for kind, fault in FAULTS.items() if not args.kinds or kind in args.kinds}
    runs: list[tuple[str, Mapping[str, Fault], int]] = [("always", chosen, args.faults)]
    runs.append(("everysec", {kind: FAULTS[kind] for kind in EVERYSEC}, args.everysec))
    runs.append(("power", POWER_LOSS, args.power))
    accounts = []
    for run in runs:
        if run[2]:
            accounts.append(await chaos(*run, seed=args.seed, rate=args.rate, longest_s=60 * args.minutes))
            print("\n".join(accounts[-1].lines()), flush=True)
    return accounts


def main() -> int:
    """Exit code 1 when anything was lost or doubled under ``always``."""
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", type=int, default=300, help="under appendfsync always, kinds in turn")
    parser.add_argument("--everysec", type=int, default=20, metavar="FAULTS", help="of the second run")
    parser.add_argument("--power", type=int, default=10, metavar="FAULTS", help="of the third run")
    parser.add_argument("--kinds", nargs="*", choices=list(FAULTS), help="of the first run; default: all")
    parser.add_argument("--rate", type=float, default=RATE, help="articles posted a second")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="no further faults of a run after so long"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    args = parser.parse_args()
    accounts: list[Account] = run_loop(everything(args))
    if args.json:
        args.json.write_text(json.dumps([_plain(account) for account in accounts], indent=1))
    failures = accounts[0].failures if accounts and accounts[0].setting == "always" else {}
    if failures:
        print(f"FAILED: {failures}")
    return int(bool(failures))


def _plain(account: Account) -> dict[str, Any]:
    return {
        "setting": account.setting,
        "before": dict(account.before),
        "seconds": dict(account.seconds),
        "figures": account.figures,
    }


if __name__ == "__main__":
    sys.exit(main())
