"""Backup and restore as docs/runbook.md describes them: copied under load, restored to another directory."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from aggregator.app import Service, open_service
from aggregator.domain import Article
from aggregator.runtime import demo
from aggregator.settings import Settings
from aggregator.store.embedded import EmbeddedServer
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.services
ARTICLES = [Article(id=row["id"], title=row["title"], text=row["text"]) for row in demo.load_rows()]
BEFORE, MEANWHILE = ARTICLES[:30], ARTICLES[30:50]


async def verdicts(service: Service, articles: list[Article]) -> list[tuple[str, str, bool]]:
    """(id, verdict, whether this call stored it) of each article, submitted one after another."""
    answers = [await service.ingest.submit(article) for article in articles]
    return [
        (article.id, answer.outcome.verdict, answer.stored)
        for article, answer in zip(articles, answers, strict=True)
    ]


async def back_up(url: str, copy: Callable[[], None]) -> list[tuple[str, str, bool]]:
    """Store articles, run ``copy`` while more are stored; the verdicts of the first ones."""
    async with open_service(Settings(store_url=url)) as service:
        expected = await verdicts(service, BEFORE)
        await asyncio.gather(asyncio.to_thread(copy), verdicts(service, MEANWHILE))
    assert all(stored for *_, stored in expected)
    return expected


async def stored_verdicts(url: str) -> list[tuple[str, str]]:
    """(id, verdict) of the first articles in a restored store, which must contain all of them."""
    async with open_service(Settings(store_url=url)) as service:
        again = await verdicts(service, BEFORE)
    assert not any(stored for *_, stored in again)
    return [(id_, verdict) for id_, verdict, _ in again]


async def test_the_append_only_file_is_copied_while_the_store_runs(tmp_path: Path) -> None:
    """Copy appendonlydir without a rewrite and start a store on it: every article has its verdict."""
    backup = tmp_path / "backup"

    def copy() -> None:
        with redis.Redis.from_url(source.url) as client:
            client.config_set("auto-aof-rewrite-percentage", 0)
            assert client.info("persistence")["aof_rewrite_in_progress"] == 0
            shutil.copytree(source.data_dir / "appendonlydir", backup / "appendonlydir")
            client.config_set("auto-aof-rewrite-percentage", 100)

    with EmbeddedServer(tmp_path / "data") as source:
        expected = await back_up(source.url, copy)
    with EmbeddedServer(backup) as restored:
        assert await stored_verdicts(restored.url) == [(id_, verdict) for id_, verdict, _ in expected]


@pytest.mark.redis
async def test_a_snapshot_is_taken_while_redis_runs(tmp_path: Path) -> None:
    """BGSAVE; load dump.rdb without append-only file, enable the file there, and restart from it."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    backup = tmp_path / "backup"
    backup.mkdir()

    def copy() -> None:
        with redis.Redis.from_url(source.url) as client:
            client.bgsave()
            until(client, "rdb_bgsave_in_progress")
            shutil.copy(source.data_dir / "dump.rdb", backup)

    with EmbeddedServer(tmp_path / "data", binary=binary) as source:
        expected = await back_up(source.url, copy)
    with (
        EmbeddedServer(backup, binary=binary, config_overrides={"appendonly": "no"}) as restored,
        redis.Redis.from_url(restored.url) as client,
    ):
        client.config_set("appendonly", "yes")
        until(client, "aof_rewrite_in_progress")
    (backup / "dump.rdb").unlink(missing_ok=True)
    with EmbeddedServer(backup, binary=binary) as restored:
        assert await stored_verdicts(restored.url) == [(id_, verdict) for id_, verdict, _ in expected]


def until(client: redis.Redis, busy: str) -> None:
    """Wait until a background save or rewrite has finished successfully."""
    deadline = time.monotonic() + HANG_LIMIT_S
    while True:
        info = client.info("persistence")
        if not info[busy] and not info.get("aof_rewrite_scheduled"):
            assert info["rdb_last_bgsave_status"] == info["aof_last_bgrewrite_status"] == "ok"
            return
        assert time.monotonic() < deadline, f"{busy} did not finish"
        time.sleep(0.02)
