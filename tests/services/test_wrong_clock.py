"""A real service whose machine has a wrong clock: its processes and its embedded store, by libfaketime."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from aggregator.app import open_service
from aggregator.domain import Article
from aggregator.settings import Settings
from tests.support.factories import edited, story
from tests.support.server_fixture import serving

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("without_analysis_processes")]
ARTICLES = 40
WRONG = ("+100d", "-366d")
LIBRARIES = ("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1")


@pytest.fixture
def library() -> str:
    """Path of libfaketime, which sets the clock of all processes that inherit its variables."""
    found = next((path for path in LIBRARIES if Path(path).exists()), None)
    if found is None:
        pytest.skip("libfaketime is not installed")
    return found


@asynccontextmanager
async def machine(
    directory: Path, monkeypatch: pytest.MonkeyPatch, library: str = "", offset: str = ""
) -> AsyncIterator[aiohttp.ClientSession]:
    """A service on ``directory`` and its store, under a clock that is wrong by ``offset``."""
    with monkeypatch.context() as patch:
        if offset:
            patch.setenv("LD_PRELOAD", library)
            patch.setenv("FAKETIME", offset)
        async with (
            serving(data_dir=directory, appendfsync="always") as url,
            aiohttp.ClientSession(url) as session,
        ):
            yield session


async def post(session: aiohttp.ClientSession, id_: str, text: str) -> tuple[int, str]:
    """Status, and verdict or problem code."""
    async with session.post("/v1/articles", json={"id": id_, "text": text, "lang": "en"}) as answer:
        body = await answer.json()
        return answer.status, body.get("verdict") or body["code"]


async def status(session: aiohttp.ClientSession, path: str) -> int:
    """The status of a GET."""
    async with session.get(path) as answer:
        return answer.status


async def test_nothing_is_lost_when_a_service_starts_with_a_wrong_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    """Meanwhile it serves reads, refuses writes and is not ready; afterwards all is as before."""
    async with open_service(Settings(data_dir=str(tmp_path), appendfsync="always")) as service:
        for i in range(ARTICLES):
            stored = await service.articles.ingest.submit(Article(id=f"a{i}", text=story(i), lang="en"))
            assert stored.outcome.verdict == "new"

    for offset in WRONG:
        await serve_with_wrong_clock(tmp_path, monkeypatch, library, offset)

    async with machine(tmp_path, monkeypatch) as session:
        assert await status(session, "/readyz") == 200
        for i in range(ARTICLES):
            assert await status(session, f"/v1/articles/a{i}") == 200
            assert await post(session, f"a{i}", story(i)) == (200, "new")
            assert await post(session, f"copy{i}", edited(story(i), i)) == (200, "duplicate")
        assert await post(session, "fresh", story(98)) == (201, "new")
        assert await status(session, "/v1/articles/fresh") == 200


async def serve_with_wrong_clock(
    directory: Path, monkeypatch: pytest.MonkeyPatch, library: str, offset: str
) -> None:
    """The service finds every article, refuses a new one, and the doctor names the way out."""
    async with machine(directory, monkeypatch, library, offset) as session:
        async with session.get("/readyz") as answer:
            assert answer.status == 503
            assert "The clock of this machine says" in await answer.text()
        assert await post(session, "during", story(99)) == (503, "clock")
        assert [await status(session, f"/v1/articles/a{i}") for i in range(ARTICLES)] == [200] * ARTICLES
        doctor = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "aggregator", "doctor", f"--data-dir={directory}"),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "LD_PRELOAD": library, "FAKETIME": offset},
        )
        printed, _ = await doctor.communicate()
        assert doctor.returncode == 3
        assert b"aggregator doctor --accept-clock" in printed
