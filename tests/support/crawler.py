"""Crawler that posts articles during a backup, and its report of the damage.

Articles are posted in pairs, a story and an edited copy, of invented words in a language without a fitted
model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp

from tests.support.factories import edited, story
from tests.support.hang_limit import HANG_LIMIT_S

PAUSE_S = 0.05
CRAWLERS = 8


@dataclass(slots=True)
class CrawlReport:
    """Answers that the crawler got, and what was stored afterwards.

    Attributes:
        acknowledged: id -> (verdict, time of the answer in s of the monotonic clock).
        longest_s: Longest time until an article was acknowledged, retries included.
        lost: Acknowledged articles that are no longer stored.
        changed: Ids whose stored verdict differs from the answer.
    """

    acknowledged: dict[str, tuple[str, float]] = field(default_factory=dict)
    longest_s: float = 0.0
    lost: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


class Crawler:
    """Posts pairs to a server at ``url``; a rejected request is repeated."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.report = CrawlReport()
        self._session, self._url = session, url
        self._next = 0
        self._stopped = False
        self._acknowledged = asyncio.Event()

    async def crawl_during(self, fault: Callable[[], Awaitable[None]]) -> CrawlReport:
        """Crawl while ``fault`` runs, from before it until after it, and check what is stored."""
        crawlers = [asyncio.create_task(self._crawl()) for _ in range(CRAWLERS)]
        await fault()
        self._stopped = True
        await asyncio.gather(*crawlers)
        await self._check_stored()
        return self.report

    async def until_acknowledged(self, articles: int) -> None:
        """Wait until this many further articles are acknowledged."""
        wanted = len(self.report.acknowledged) + articles
        async with asyncio.timeout(HANG_LIMIT_S):
            while len(self.report.acknowledged) < wanted:
                self._acknowledged.clear()
                await self._acknowledged.wait()

    async def post(self, id_: str, text: str) -> str:
        """Post one article until it is acknowledged; its verdict."""
        body = {"id": id_, "text": text, "title": f"Report {id_}", "lang": "eo"}
        started_s = time.monotonic()
        while True:
            async with self._session.post(f"{self._url}/v1/articles", json=body) as response:
                if response.status in (200, 201):
                    verdict = str((await response.json())["verdict"])
                    break
                assert response.status == 503, await response.text()
                assert "Retry-After" in response.headers
            assert time.monotonic() < started_s + HANG_LIMIT_S, f"{id_} was rejected for {HANG_LIMIT_S} s"
            await asyncio.sleep(PAUSE_S)
        now_s = time.monotonic()
        self.report.longest_s = max(self.report.longest_s, now_s - started_s)
        self.report.acknowledged[id_] = verdict, now_s
        self._acknowledged.set()
        return verdict

    async def _crawl(self) -> None:
        while not self._stopped:
            pair, self._next = self._next, self._next + 1
            text = story(pair, sentences=25)
            await self.post(f"{pair}-0", text)
            await self.post(f"{pair}-1", edited(text, pair))

    async def _check_stored(self) -> None:
        for id_, (verdict, _) in self.report.acknowledged.items():
            async with self._session.get(f"{self._url}/v1/articles/{id_}") as response:
                if response.status in (404, 410):
                    self.report.lost.append(id_)
                else:
                    assert response.status == 200, await response.text()
                    if (await response.json())["verdict"] != verdict:
                        self.report.changed.append(id_)
