"""Migration to another model under a running service; the backfill is killed and repeated."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import redis.asyncio as redis

from aggregator.store.embedded import EmbeddedServer
from tests.support.factories import edited, story, write_model
from tests.support.server_fixture import serving
from tests.support.stores import direct_async_client

ARTICLES = 150


async def migrate(store: str, models: Path, *, kill: bool = False) -> tuple[int, str]:
    """Exit code and output of the command; ``kill``: SIGKILL once it has copied something."""
    options = ["--store", store, "--migration-models-dir", str(models), "--no-progress"]
    async with direct_async_client(store) as client:
        before = await copied(client)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aggregator", "migrate", *options, stderr=asyncio.subprocess.PIPE
        )
        while kill and process.returncode is None and await copied(client) == before:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.005)
        if kill and process.returncode is None:
            process.kill()
        _, output = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def copied(client: redis.Redis) -> int:
    """The number of records in all spaces."""
    return len(await client.keys("r:*"))


@pytest.mark.services
async def test_a_migration_with_a_killed_backfill_loses_no_article(
    own_server: EmbeddedServer, tmp_path: Path
) -> None:
    """Articles keep their verdicts during the backfill, after the switch and after switching back."""
    url = own_server.url
    write_model(tmp_path)
    texts = {f"a{n}": story(n, 20) for n in range(ARTICLES)}

    async def post(session: aiohttp.ClientSession, site: str, id_: str, text: str) -> str:
        body = {"id": id_, "text": text, "lang": "eo"}
        async with session.post(f"{site}/v1/articles", json=body) as response:
            assert response.status in (200, 201), await response.text()
            return str((await response.json())["verdict"])

    async with aiohttp.ClientSession() as session:
        async with serving("--store-texts", store_url=url, log_level="ERROR") as site:
            before = {id_: await post(session, site, id_, text) for id_, text in texts.items()}

        change: dict[str, Any] = {"store_url": url, "migration_models_dir": tmp_path, "log_level": "ERROR"}
        async with serving("--store-texts", **change) as site:
            assert (await migrate(url, tmp_path, kill=True))[0] == -signal.SIGKILL
            backfill = asyncio.create_task(migrate(url, tmp_path))
            copies = {f"c{n}": edited(texts[f"a{n}"], n) for n in range(40)}
            meanwhile = {id_: await post(session, site, id_, text) for id_, text in copies.items()}
            code, output = await backfill
            assert code == 0, output

        async with serving("--store-texts", "--migration-serve", **change) as site:
            after = {id_: await post(session, site, id_, text) for id_, text in (texts | copies).items()}
            assert await post(session, site, "late", edited(texts["a77"], 5)) == "duplicate"

        async with serving("--store-texts", **change) as site:
            assert await post(session, site, "late", edited(texts["a77"], 5)) == "duplicate"
            assert await post(session, site, "later", edited(texts["a78"], 6)) == "duplicate"

    assert set(before.values()) == {"new"} and set(meanwhile.values()) == {"duplicate"}
    assert after == before | meanwhile
