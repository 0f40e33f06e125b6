"""A full disk under the embedded store: everything stored is readable, writes are refused with the reason."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from aggregator.app import open_service
from aggregator.settings import Settings
from tests.support.factories import story
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving
from tests.support.small_disk import fill, small_disk

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("without_analysis_processes")]


class Site:
    """Client of one service, and what it was acknowledged."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url
        self.acknowledged: list[str] = []

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of a GET."""
        async with self._session.get(self._url + path) as response:
            return response.status, await response.text()

    async def post(self, number: int) -> tuple[int, str]:
        """Post article ``number``; status and problem."""
        article = {"id": f"a{number}", "text": story(number, 40), "lang": "eo"}
        async with self._session.post(self._url + "/v1/articles", json=article) as response:
            if response.status == 201:
                self.acknowledged.append(article["id"])
            return response.status, str((await response.json()).get("detail", ""))

    async def until(self, holds: Callable[[int, str], bool], path: str = "/readyz") -> None:
        """Poll ``path`` until status and body satisfy ``holds``."""
        async with asyncio.timeout(HANG_LIMIT_S):
            while not holds(*await self.get(path)):  # noqa: ASYNC110  waits for a process
                await asyncio.sleep(0.02)

    async def assert_everything_is_readable(self) -> None:
        """Every acknowledged article is answered 200."""
        for id_ in self.acknowledged:
            assert (await self.get(f"/v1/articles/{id_}"))[0] == 200, id_


@pytest.mark.parametrize("appendfsync", ["always", "everysec"])
async def test_a_full_disk_makes_the_service_readable_only_until_space_returns(
    tmp_path: Path, appendfsync: str
) -> None:
    """Filled by another program: reads 200, writes 503 with the reason, the same store process, recovery."""
    with small_disk(tmp_path / "disk") as disk:
        async with (
            serving(data_dir=disk / "data", appendfsync=appendfsync) as url,
            aiohttp.ClientSession() as session,
        ):
            site = Site(session, url)
            for number in range(40):
                assert (await site.post(number))[0] == 201
            store = _store_pid(disk / "data")
            other = fill(disk)

            number = 1000
            refused: list[str] = []
            async with asyncio.timeout(HANG_LIMIT_S):
                while len(refused) < 20:
                    status, problem = await site.post(number)
                    number += 1
                    if status != 201:
                        assert status == 503
                        refused.append(problem)
                    if number % 5 == 0 or len(refused) == 1:
                        await site.assert_everything_is_readable()
            assert all(f"The disk of {disk / 'data'} is full: 0.0 MB free" in problem for problem in refused)
            status, body = await site.get("/readyz")
            assert status == 503 and "is full: 0.0 MB free" in body
            assert _store_pid(disk / "data") == store

            other.unlink()
            await site.until(lambda status, _: status == 200)
            assert (await site.post(5000))[0] == 201
            await site.assert_everything_is_readable()
        settings = Settings(data_dir=str(disk / "data"), appendfsync=appendfsync)
        async with open_service(settings) as service:  # what a new start of the store loads
            for id_ in site.acknowledged:
                assert (await service.articles.index.articles.get(id_)).record.text_hash, id_


async def test_a_store_that_dies_on_a_full_disk_is_restarted_readable(tmp_path: Path) -> None:
    """SIGKILL of the store, then of the whole service, while the disk is full."""
    with small_disk(tmp_path / "disk") as disk:
        async with (
            serving(data_dir=disk / "data", appendfsync="always") as url,
            aiohttp.ClientSession() as session,
        ):
            site = Site(session, url)
            for number in range(20):
                assert (await site.post(number))[0] == 201
            other = fill(disk)
            await site.until(lambda status, body: status == 503 and "is full" in body)
            os.kill(_store_pid(disk / "data"), signal.SIGKILL)
            await site.until(lambda status, _: status == 200, "/v1/articles/a0")
            await site.assert_everything_is_readable()
            assert "is full" in (await site.post(100))[1]
        acknowledged = site.acknowledged
        async with (
            serving(data_dir=disk / "data", appendfsync="always") as url,
            aiohttp.ClientSession() as session,
        ):
            site = Site(session, url)
            site.acknowledged = acknowledged
            await site.assert_everything_is_readable()
            assert "is full" in (await site.get("/readyz"))[1]
            assert "is full" in (await site.post(100))[1]
            other.unlink()
            await site.until(lambda status, _: status == 200)
            assert (await site.post(100))[0] == 201


def _store_pid(data_dir: Path) -> int:
    """Process id of the store that runs in a directory."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if "valkey" in (process / "comm").read_text() and (process / "cwd").resolve() == data_dir:
                return int(process.name)
        except OSError:
            continue
    raise AssertionError("no store is running")
