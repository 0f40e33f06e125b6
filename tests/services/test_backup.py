"""Backup during posts, restore, and audit of the result, by the commands that an operator uses."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest

from aggregator.app import open_service
from aggregator.domain import Article
from aggregator.errors import ImplausibleClock
from aggregator.index.upkeep.clock_guard import TRUSTED_TIME_KEY, TrustedTime
from aggregator.runtime import demo
from aggregator.settings import Settings, load
from aggregator.store.base import Put
from aggregator.store.decoding import PLAIN
from aggregator.store.embedded import EmbeddedServer
from aggregator.time_units import DAY_MS, format_rfc3339, wall_clock_ms
from tests.support.crawler import Crawler
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import ROOT, serving

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("without_analysis_processes")]
ARTICLES = [Article(id=row["id"], title=row["title"], text=row["text"]) for row in demo.load_rows()]


def aggregator(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    return subprocess.run(
        [sys.executable, "-m", "aggregator", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False,
    )  # fmt: skip


@contextmanager
def store_option(kind: str, data_dir: Path) -> Iterator[str]:
    """The option of a service for a store: embedded, or a Redis server that runs meanwhile."""
    if kind == "embedded":
        yield f"--data-dir={data_dir}"
        return
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    with EmbeddedServer(data_dir, binary=binary) as server:
        yield f"--store-url={server.url}"


def as_target(option: str) -> str:
    """The option of ``backup`` and ``restore`` for the same store."""
    return option.replace("--store-url", "--store")


@pytest.mark.parametrize("kind", ["embedded", pytest.param("redis", marks=pytest.mark.redis)])
async def test_nothing_acknowledged_before_a_backup_is_lost(tmp_path: Path, kind: str) -> None:
    """The restored store has every article with its verdict, and its audit is clean."""
    began_s = 0.0
    with store_option(kind, tmp_path / "source") as option:
        async with serving(option) as url, aiohttp.ClientSession() as session:
            crawler = Crawler(session, url)

            async def back_up() -> None:
                nonlocal began_s
                await crawler.until_acknowledged(20)
                began_s = time.monotonic()
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "aggregator", "backup"), str(tmp_path / "backups"),
                    as_target(option), cwd=ROOT,
                )  # fmt: skip
                assert await process.wait() == 0
                await crawler.until_acknowledged(20)

            report = await crawler.crawl_during(back_up)
    assert report.lost == report.changed == []
    before = [(id_, verdict) for id_, (verdict, at_s) in report.acknowledged.items() if at_s < began_s]
    assert len(before) >= 20

    with store_option(kind, tmp_path / "target") as option:
        restored = aggregator("restore", str(tmp_path / "backups"), as_target(option))
        assert restored.returncode == 0, restored.stderr
        audit = aggregator("doctor", "--audit", option)
        assert audit.returncode == 0, audit.stdout
        assert "all agree" in audit.stdout
        name, _, value = option.removeprefix("--").partition("=")
        async with open_service(load(overrides={name.replace("-", "_"): value})) as service:
            for id_, verdict in before:
                assert (await service.articles.index.articles.get(id_)).outcome.verdict == verdict, id_


async def test_an_old_backup_is_not_used_before_its_clock_is_confirmed(tmp_path: Path) -> None:
    """The trusted time comes with the backup: after 40 days nothing is stored, and nothing has expired."""
    used_ms = wall_clock_ms() - 40 * DAY_MS
    async with open_service(Settings(data_dir=str(tmp_path / "data"))) as service:
        for article in ARTICLES[:10]:
            await service.articles.ingest.submit(article)
        stored = PLAIN + msgspec.msgpack.encode(TrustedTime(used_ms, used_ms))
        await service.store.put([Put(TRUSTED_TIME_KEY, stored)])
    backed_up = aggregator("backup", str(tmp_path / "backups"), f"--data-dir={tmp_path / 'data'}")
    manifest = Path(backed_up.stdout.strip()) / "manifest.json"
    created = json.loads(manifest.read_bytes())["created"]
    manifest.write_text(manifest.read_text().replace(created, format_rfc3339(used_ms)))

    restored = aggregator("restore", str(tmp_path / "backups"), f"--data-dir={tmp_path / 'again'}")

    assert "40 days old: the service refuses to write until `aggregator doctor --accept-cl" in restored.stdout
    async with open_service(Settings(data_dir=str(tmp_path / "again"))) as service:
        guard = service.background.clock_guard
        with pytest.raises(ImplausibleClock, match=r"40\.0 days after this data was last in use"):
            await service.articles.ingest.submit(ARTICLES[20])
        await guard.accept()
        assert guard.problem is None and guard.trusted_ms is not None
        assert guard.trusted_ms - used_ms < DAY_MS
        answers = [await service.articles.ingest.submit(article) for article in ARTICLES[:10]]

    assert not any(answer.stored for answer in answers)
