"""Cost of a killed cluster primary per store configuration (``scripts/bench failover``), as JSON lines.

A cluster of three primaries with one replica each (node timeout 2 s), one service, and eight crawlers that
post pairs of near-copies and repeat refused posts. The primary that holds the index gets SIGKILL and its
replica takes over. Two cases: the replica is in sync; replication has been cut for the last ``CUT_S`` seconds
(the primary refuses PSYNC) while the cluster bus works. The killed server is restarted after ``RESTART_S``
seconds and becomes a replica.

    answered   articles acknowledged, before and after
    refusals   responses 503; the crawler repeats the post
    longest_s  longest time from first request to acknowledgement: what the failover costs a client
    lost       acknowledged articles that are missing afterwards
    last_s     age of the oldest of them at the time of the kill
    changed    ids whose stored verdict differs from the acknowledged one
    two_new    pairs of near-copies that were both called new
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from aggregator.index import keys
from tests.support.cluster import Cluster, running_cluster
from tests.support.crawler import Crawler, CrawlReport
from tests.support.server_fixture import serving

CUT_S = 4.0
RESTART_S = 5.0
BEFORE_S, AFTER_S = 2.0, 3.0


@dataclass(frozen=True, slots=True)
class Setting:
    """Configuration lines of the store servers, and options of the store's URL."""

    name: str
    server: dict[str, str] = field(default_factory=dict)
    option: str = ""


SETTINGS = (
    Setting("appendfsync everysec", {"appendfsync": "everysec"}),
    Setting("appendfsync always", {"appendfsync": "always"}),
    Setting(
        "everysec, min-replicas-to-write 1, min-replicas-max-lag 1",
        {"min-replicas-to-write": "1", "min-replicas-max-lag": "1"},
    ),
    Setting("replicated", {"appendfsync": "always"}, "?replicated=1"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    for setting in SETTINGS:
        for cut_s in (0.0, CUT_S):
            for _ in range(args.rounds):
                print(json.dumps(run(setting, cut_s)), flush=True)


def run(setting: Setting, cut_s: float) -> dict[str, object]:
    """Kill one primary of a new cluster."""
    with (
        tempfile.TemporaryDirectory() as directory,
        running_cluster(Path(directory), config=setting.server) as cluster,
    ):
        report, killed_s = asyncio.run(_through_failover(cluster, setting, cut_s))
    lost_s = [report.acknowledged[id_][1] for id_ in report.lost]
    return {
        "setting": setting.name,
        "replication_cut_s": cut_s,
        "answered": len(report.acknowledged),
        "refusals": report.refusals,
        "longest_s": round(report.longest_s, 2),
        "lost": len(lost_s),
        "last_s": round(killed_s - min(lost_s), 2) if lost_s else 0.0,
        "changed": len(report.changed),
        "two_new": report.two_new,
    }


async def _through_failover(cluster: Cluster, setting: Setting, cut_s: float) -> tuple[CrawlReport, float]:
    killed_s = 0.0
    options = {
        "store_url": cluster.url + setting.option,
        "log_level": "ERROR",
        "detector_interval_seconds": 2,
    }
    async with serving(**options) as url, aiohttp.ClientSession() as session:  # type: ignore[arg-type]
        async with session.get(f"{url}/readyz") as response:
            space = next(s for s in (await response.json())["spaces"] if s.startswith("xx"))
        primary = cluster.primary_of(keys.tag(space, 0) + keys.STREAM)

        async def fault() -> None:
            nonlocal killed_s
            await asyncio.sleep(BEFORE_S)
            if cut_s:
                cluster.cut_replication(primary)
                await asyncio.sleep(cut_s)
            killed_s = time.monotonic()
            cluster.kill(primary)
            await asyncio.sleep(RESTART_S)
            cluster.servers[primary].restart_if_dead()
            await asyncio.sleep(AFTER_S)

        report = await Crawler(session, url).crawl_during(fault)
        return report, killed_s


if __name__ == "__main__":
    main()
