"""A model is changed under a running service with the real commands; the fill is killed and started again."""

import asyncio
import signal
import sys

import aiohttp
import pytest
import redis.asyncio as redis

from aggregator.store.embedded import EmbeddedServer
from tests.support.factories import edited, story
from tests.support.server_fixture import serving

ARTICLES = 150


async def reindex(store: str, *, kill: bool = False) -> tuple[int, str]:
    """Exit code and last words of the command; with ``kill`` it gets SIGKILL when it has noted how far it is."""
    options = ["--store", store, "--migration-block-plan", "5x13", "--no-progress"]
    async with redis.Redis.from_url(store) as client:
        before = await places(client)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aggregator", "reindex", *options, stderr=asyncio.subprocess.PIPE
        )
        while kill and process.returncode is None and await places(client) == before:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.005)
        if kill and process.returncode is None:
            process.kill()
        _, said = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def places(client: redis.Redis) -> list[bytes | None]:
    """How far fills have noted that they are."""
    return [await client.get(key) for key in await client.keys("{reindex}*")]


@pytest.mark.services
@pytest.mark.timeout(180)
async def test_a_change_with_kills_on_the_way_forgets_nothing(own_server: EmbeddedServer) -> None:
    """Articles before, a service that writes both, a fill killed under way, articles meanwhile, the switch, and back."""
    url = own_server.url
    texts = {f"a{n}": story(n, 20) for n in range(ARTICLES)}

    async def post(session: aiohttp.ClientSession, site: str, id_: str, text: str) -> str:
        body = {"id": id_, "text": text, "lang": "eo"}
        async with session.post(f"{site}/v1/articles", json=body) as answer:
            assert answer.status in (200, 201), await answer.text()
            return str((await answer.json())["verdict"])

    async with aiohttp.ClientSession() as session:
        async with serving("--store-texts", store_url=url, log_level="ERROR") as site:
            before = {id_: await post(session, site, id_, text) for id_, text in texts.items()}

        change = {"store_url": url, "migration_block_plan": "5x13", "log_level": "ERROR"}
        async with serving("--store-texts", **change) as site:
            assert (await reindex(url, kill=True))[0] == -signal.SIGKILL
            filling = asyncio.create_task(reindex(url))
            copies = {f"c{n}": edited(texts[f"a{n}"], n) for n in range(40)}
            meanwhile = {id_: await post(session, site, id_, text) for id_, text in copies.items()}
            code, said = await filling
            assert code == 0, said

        async with serving("--store-texts", "--migration-serve", **change) as site:
            after = {id_: await post(session, site, id_, text) for id_, text in (texts | copies).items()}
            assert await post(session, site, "late", edited(texts["a77"], 5)) == "duplicate"

        async with serving("--store-texts", **change) as site:
            assert await post(session, site, "late", edited(texts["a77"], 5)) == "duplicate"
            assert await post(session, site, "later", edited(texts["a78"], 6)) == "duplicate"

    assert set(before.values()) == {"new"} and set(meanwhile.values()) == {"duplicate"}
    assert after == before | meanwhile
