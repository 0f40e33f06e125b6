"""Scrapy crawls of a small site on loopback, with a service behind the pipeline.

One service answers all tests but the one that restarts it. Each test crawls other pages; a test that loses
the service closes a proxy.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator_client import Client, SyncClient
from tests.chaos.faulty_proxy import FaultyProxy
from tests.support.factories import edited, story
from tests.support.server_fixture import serving, serving_alone

CRAWL = Path(__file__).with_name("crawl.py")
PAGES, STORIES = 120, 80

pytestmark = pytest.mark.services


@dataclass
class Site:
    """Pages; those after the first ``stories`` ones are near-duplicates of these.

    ``first``: number of the first page, a multiple of ``STORIES``. ``visits``: function to call at the n-th
    request. ``dates``: those of the pages, in turn.
    """

    url: str = ""
    first: int = 0
    pages: int = PAGES
    stories: int = STORIES
    served: int = 0
    visits: dict[int, Callable[[], object]] = field(default_factory=dict)
    dates: Sequence[str] = ("",)

    async def page(self, request: web.Request) -> web.Response:
        """Serve one page."""
        number = int(request.match_info["number"])
        self.served += 1
        if self.served in self.visits:
            result = self.visits[self.served]()
            if asyncio.iscoroutine(result):
                await result
        text = story(self.first + (number - self.first) % self.stories, 12)
        if number - self.first >= self.stories:
            text = edited(text, number)
        date = self.dates[(number - self.first) % len(self.dates)]
        body = f"<h1>Page {number}</h1><time>{date}</time><p>{text}</p>"
        return web.Response(text=body, content_type="text/html")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A site that is served."""
    served = Site()
    app = web.Application()
    app.router.add_get("/page/{number}", served.page)
    async with TestServer(app) as server:
        served.url = str(server.make_url("")).rstrip("/")
        yield served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of the service of all tests that do not restart it."""
    with serving_alone(tmp_path_factory.mktemp("service"), "--store-url=memory") as (_, url):
        yield url


@asynccontextmanager
async def relayed(service: str) -> AsyncIterator[FaultyProxy]:
    """A proxy of the service; closing it resets and refuses connections, as a killed service does."""
    port = urlsplit(service).port
    assert port is not None
    proxy = FaultyProxy(port, random.Random(0))
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()


@dataclass(frozen=True)
class Outcome:
    """The database, the counts of the pipeline and the log of the crawl."""

    rows: list[dict[str, Any]]
    stats: dict[str, int]
    log: str

    @property
    def stories(self) -> set[int]:
        """The stories in the database, as original or as copy."""
        return {int(row["id"]) % STORIES for row in self.rows}


def _outcome(database: Path) -> Outcome:
    rows = [json.loads(line) for line in database.read_text().splitlines()]
    stats = json.loads(database.with_name(database.name + ".stats").read_text())
    return Outcome(rows, stats, database.with_name(database.name + ".log").read_text())


async def crawl(site: Site, folder: Path, *settings: str, poison: str = "") -> Outcome:
    """Run a crawl to its end."""
    database = folder / "database.jsonl"
    database.touch()
    arguments = [str(CRAWL), site.url, str(site.first), str(site.pages), str(database), *settings]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error::DeprecationWarning:aggregator", *arguments,
        env={**os.environ, "POISON": poison}, cwd=folder,
    )  # fmt: skip
    assert await process.wait() == 0
    return _outcome(database)


async def test_exactly_one_of_each_story_reaches_the_database(
    service: str, site: Site, tmp_path: Path
) -> None:
    """120 pages with 40 near-duplicates: 80 tagged items; a failed insert removes its reservation."""
    outcome = await crawl(
        site, tmp_path, f"NEWSDEDUP_URL={service}", "NEWSDEDUP_ON_FAILURE=closed", poison="60"
    )

    # Page 60 has no copy; its insert failed, so it is missing, and its reservation was removed.
    assert len(outcome.rows) == STORIES - 1
    assert outcome.stories == set(range(STORIES)) - {60}
    assert {row["dedup"]["verdict"] for row in outcome.rows} <= {"new", "related"}
    assert outcome.stats["newsdedup/duplicate"] == PAGES - STORIES
    assert outcome.stats["newsdedup/undone"] == 1
    assert outcome.stats["newsdedup/checked"] == PAGES
    dropped = [line for line in outcome.log.splitlines() if "Dropped" in line]
    assert len(dropped) == PAGES - STORIES and max(map(len, dropped)) < 200
    assert "unchecked" not in outcome.log


async def test_tagged_duplicates_pass(service: str, site: Site, tmp_path: Path) -> None:
    """NEWSDEDUP_DUPLICATES=tag stores duplicates with the id of their canonical article."""
    site.first, site.pages, site.stories = 10 * STORIES, 30, 20
    outcome = await crawl(
        site, tmp_path, f"NEWSDEDUP_URL={service}", "NEWSDEDUP_DUPLICATES=tag", "NEWSDEDUP_ON_FAILURE=closed"
    )
    copies = [row for row in outcome.rows if row["dedup"]["verdict"] == "duplicate"]

    assert (len(outcome.rows), len(copies)) == (30, 10)
    assert all(int(row["dedup"]["canonical_id"]) % 20 == int(row["id"]) % 20 for row in copies)


async def test_what_was_taken_down_is_dropped(service: str, site: Site, tmp_path: Path) -> None:
    """Also where duplicates are tagged: nothing of it reaches the database again."""
    site.first, site.pages, site.stories = 50 * STORIES, 6, 6
    settings = (f"NEWSDEDUP_URL={service}", "NEWSDEDUP_DUPLICATES=tag")
    (tmp_path / "first").mkdir()
    first = await crawl(site, tmp_path / "first", *settings)
    removed = first.rows[2]
    with SyncClient(service) as client:
        await asyncio.to_thread(client.delete, removed["dedup"]["id"], take_down=True)

    second = await crawl(site, tmp_path, *settings)

    assert {row["id"] for row in second.rows} == {r["id"] for r in first.rows} - {removed["id"]}
    assert (second.stats["newsdedup/taken_down"], second.stats["newsdedup/checked"]) == (1, 6)
    assert "was taken down" in second.log and "newsdedup/unchecked" not in second.stats


async def test_dates_of_a_crawl_are_stored_at_their_hour(service: str, site: Site, tmp_path: Path) -> None:
    """Those that cannot be read for certain cost no article, and are counted and said."""
    site.first, site.pages, site.stories = 30 * STORIES, 8, 8
    site.dates = (
        "Tue, 3 Feb 2026 11:20:00 +05:30",
        "Tue, 3 Feb 2026 14:50:00 KST",
        "3 February 2026 12:50 AM EST",
        "1770097800",
        "2026-02-03 13:50:00",
        "Tue, 3 Feb 2026 13:50:00 IST",
        "3/2/2026",
        "",
    )
    outcome = await crawl(site, tmp_path, f"NEWSDEDUP_URL={service}", "NEWSDEDUP_TIMEZONE=Asia/Shanghai")
    async with Client(service, deadline_s=60) as client:
        stored = [await client.get(str(site.first + page)) for page in range(8)]

    meant = datetime(2026, 2, 3, 5, 50, tzinfo=UTC)
    assert [article.published_at for article in stored] == [meant] * 5 + [None] * 3
    assert outcome.stats["newsdedup/unread_date"] == 2
    assert len(outcome.rows) == outcome.stats["newsdedup/checked"] == 8
    assert "WARNING: 2 items had a date that could not be read, e.g. " in outcome.log


async def test_failing_open_loses_no_story(service: str, site: Site, tmp_path: Path) -> None:
    """The service is lost during the crawl: items without an answer pass, and each is counted and said."""
    site.first = 20 * STORIES
    async with relayed(service) as proxy:
        site.visits[50] = proxy.close
        outcome = await crawl(
            site, tmp_path, f"NEWSDEDUP_URL=http://127.0.0.1:{proxy.port}", "NEWSDEDUP_DEADLINE=1"
        )

    assert outcome.stories == set(range(STORIES))
    unchecked = outcome.stats["newsdedup/unchecked"]
    assert unchecked == sum(row["dedup"]["verdict"] == "unknown" for row in outcome.rows) > 0
    assert unchecked + outcome.stats["newsdedup/checked"] == PAGES
    assert unchecked == sum(n for name, n in outcome.stats.items() if "newsdedup/unchecked/" in name)
    assert len(outcome.rows) == PAGES - outcome.stats.get("newsdedup/duplicate", 0)
    assert re.search(r"WARNING: \d+ of \d+ items passed unchecked: ", outcome.log)
    assert re.search(rf"ERROR: at the end: {unchecked} of {PAGES} items passed unchecked: ", outcome.log)


async def test_failing_closed_retries_until_the_service_is_back(
    site: Site, tmp_path: Path, free_port: int
) -> None:
    """Killed during the crawl and restarted: exactly 80 items are stored."""
    pids: dict[int, str] = {}
    options: dict[str, Any] = {"data_dir": tmp_path / "var", "appendfsync": "always", "port": free_port}
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(**options, pids=pids))

        async def restart() -> None:
            os.kill(next(iter(pids)), signal.SIGKILL)
            await stack.enter_async_context(serving(**options))

        site.visits[50] = restart
        outcome = await crawl(
            site,
            tmp_path,
            f"NEWSDEDUP_URL={url}",
            "NEWSDEDUP_ON_FAILURE=closed",
            "NEWSDEDUP_RETRY_SECONDS=3600",
        )

    assert (len(outcome.rows), outcome.stories) == (STORIES, set(range(STORIES)))
    assert "newsdedup/held" not in outcome.stats


async def test_failing_closed_holds_unchecked_items(service: str, site: Site, tmp_path: Path) -> None:
    """Without a service after the start no item passes; all are in a file that can be ingested later."""
    site.first, site.pages = 30 * STORIES, 30
    async with relayed(service) as proxy:
        site.visits[1] = proxy.close
        outcome = await crawl(
            site,
            tmp_path,
            f"NEWSDEDUP_URL=http://127.0.0.1:{proxy.port}",
            "NEWSDEDUP_ON_FAILURE=closed",
            "NEWSDEDUP_RETRY_SECONDS=1",
        )
    held, items = (
        [json.loads(line) for line in (tmp_path / f"newsdedup-held{name}.jsonl").read_text().splitlines()]
        for name in ("", "-items")
    )

    assert outcome.rows == []
    assert [item["headline"] for item in items] == [article["title"] for article in held]
    assert {row["id"] for row in held} == {str(site.first + number) for number in range(30)}
    assert outcome.stats["newsdedup/held"] == 30
    assert "ERROR: at the end: 30 of 30 items got no verdict (held in newsdedup-held.jsonl" in outcome.log
    assert "INFO: Dropped" not in outcome.log


async def test_failing_closed_without_a_service_stops_the_spider(
    site: Site, tmp_path: Path, free_port: int
) -> None:
    """At the start, with one line that says why."""
    outcome = await crawl(
        site,
        tmp_path,
        f"NEWSDEDUP_URL=http://127.0.0.1:{free_port}",
        "NEWSDEDUP_ON_FAILURE=closed",
        "NEWSDEDUP_RETRY_SECONDS=0.5",
    )

    assert (outcome.rows, site.served) == ([], 0)
    assert "the spider is stopped: The service is not ready: http://127.0.0.1:" in outcome.log
    assert "Connection refused." in outcome.log and "Traceback" not in outcome.log
