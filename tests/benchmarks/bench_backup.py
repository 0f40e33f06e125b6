"""Backup and restore of a store while articles are posted (``scripts/bench backup``), as JSON lines.

A store gets ``--articles`` unrelated articles, most of them without HTTP. Then eight crawlers post pairs of
near-copies to a service on it, and ``aggregator backup`` runs meanwhile. The service stops, ``aggregator
restore`` writes the backup into an empty store, and ``aggregator doctor --audit`` and a service read that.

    backup_s, restore_s, audit_s   wall clock of the whole commands
    store_mb, backup_mb            memory of the store, size of the backup
    posts_per_s, longest_s         posts acknowledged: before the backup, and during it; longest wait of one
    before, lost, changed          posts acknowledged before the backup began; those that the restored store
                                   does not have; those with another verdict there
    audit                          exit code of the audit
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import redis

from aggregator.app import build_analyzers, open_service
from aggregator.backup.creation import find_backups
from aggregator.domain import Analysis
from aggregator.settings import Settings
from aggregator.store.embedded import EmbeddedServer
from tests.benchmarks.indexing.commit import (
    PreparedIngest,
    prepare_articles,
    submit_batches,
    unrelated_analyses,
)
from tests.support.crawler import Crawler
from tests.support.server_fixture import serving

WARM_UP_S = 5.0
STEP = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench backup", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=float, default=1e5, help="stored before the posts (default 1e5)")
    parser.add_argument("--store", nargs="+", default=["embedded", "redis"], choices=("embedded", "redis"))
    args = parser.parse_args()
    for kind in args.store:
        with tempfile.TemporaryDirectory() as directory:
            figures = asyncio.run(measure(kind, Path(directory), int(args.articles)))
        print(json.dumps({"store": kind, "articles": int(args.articles), **figures}), flush=True)


@contextlib.contextmanager
def store_option(kind: str, data_dir: Path) -> Iterator[str]:
    """Option of commands and services for a store: embedded, or a Redis server that runs meanwhile."""
    if kind == "embedded":
        yield f"--data-dir={data_dir}"
        return
    with EmbeddedServer(data_dir, binary=shutil.which("redis-server")) as server:
        yield f"--store-url={server.url}"


async def measure(kind: str, directory: Path, articles: int) -> dict[str, object]:
    """Fill, back up during posts, restore, and compare."""
    source, target, backups = directory / "source", directory / "target", directory / "backups"
    found: dict[str, object] = {}
    with store_option(kind, source) as option:
        found["store_mb"] = round(await fill(option, source, articles) / 1e6, 1)
        async with serving(option) as url, aiohttp.ClientSession() as session:
            crawler = Crawler(session, url)
            began_s = ended_s = 0.0

            async def back_up() -> None:
                nonlocal began_s, ended_s
                await crawler.until_acknowledged(50)
                crawler.report.longest_s = 0.0
                await asyncio.sleep(WARM_UP_S)
                found["longest_s"] = [round(crawler.report.longest_s, 3)]
                crawler.report.longest_s = 0.0
                began_s = time.monotonic()
                await command("backup", str(backups), option)
                ended_s = time.monotonic()
                await asyncio.sleep(1.0)

            report = await crawler.crawl_during(back_up)
    found["longest_s"] = [*found["longest_s"], round(report.longest_s, 3)]  # type: ignore[misc]
    times = [at_s for _, at_s in report.acknowledged.values()]
    spans = (began_s - WARM_UP_S, began_s), (began_s, ended_s)
    found["posts_per_s"] = [round(sum(a <= t < b for t in times) / (b - a)) for a, b in spans]
    found["backup_s"] = round(ended_s - began_s, 2)
    (backup,) = find_backups(backups)
    found["backup_mb"] = round(sum(path.stat().st_size for path in backup.iterdir()) / 1e6, 1)
    before = {id_: verdict for id_, (verdict, at_s) in report.acknowledged.items() if at_s < began_s}
    with store_option(kind, target) as option:
        restore_s, _ = await command("restore", str(backups), option)
        audit_s, code = await command("doctor", "--audit", option, check=False)
        found |= {"restore_s": round(restore_s, 2), "audit_s": round(audit_s, 2), "audit": code}
        async with serving(option) as url, aiohttp.ClientSession() as session:
            lost, changed = await compare(session, url, before)
    return found | {"before": len(before), "lost": lost, "changed": changed}


async def fill(option: str, data_dir: Path, articles: int) -> int:
    """Store prepared articles in the index of the crawler's language; the memory of the store in bytes."""
    analyzer, _ = build_analyzers(Settings())
    space = next(name for name in analyzer.spaces if name.startswith("xx."))

    def in_space(found: Iterator[Analysis]) -> Iterator[Analysis]:
        return (dataclasses.replace(analysis, space=space, lang="eo") for analysis in found)

    with contextlib.ExitStack() as stack:
        url = option.removeprefix("--store-url=")
        if url == option:
            url = stack.enter_context(EmbeddedServer(data_dir)).url
        async with open_service(Settings(store_url=url)):
            pass  # writes the format and the list of indexes
        for start in range(0, articles, STEP):
            analyses: dict[str, Analysis] = {}
            ingest = PreparedIngest(url, analyses, space)
            count = min(STEP, articles - start)
            await submit_batches(
                ingest,
                prepare_articles(f"p{start}-", in_space(unrelated_analyses(count, start + 1)), analyses),
            )
            await ingest.store.close()
        with redis.Redis.from_url(url) as client:
            return int(client.info("memory")["used_memory"])


async def command(name: str, argument: str, option: str, *, check: bool = True) -> tuple[float, int]:
    """Run a command on a store; seconds and exit code."""
    if name != "doctor":
        option = option.replace("--store-url", "--store")
    started_s = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "aggregator", name, argument, option, stdout=sys.stderr, env=os.environ
    )
    code = await process.wait()
    assert not (check and code), f"{name} ended with exit code {code}"
    return time.monotonic() - started_s, code


async def compare(session: aiohttp.ClientSession, url: str, before: dict[str, str]) -> tuple[int, int]:
    """How many of these articles a service does not have, and how many have another verdict there."""
    lost = changed = 0
    for id_, verdict in before.items():
        async with session.get(f"{url}/v1/articles/{id_}") as response:
            if response.status == 404:
                lost += 1
            else:
                changed += (await response.json())["verdict"] != verdict
    return lost, changed


if __name__ == "__main__":
    main()
