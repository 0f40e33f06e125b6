"""A crawler that posts while a store's primary dies, and the account of what that cost.

Shared by the test of a failover and by ``scripts/bench failover``. Articles come in pairs, a story and an
edited copy of it, of made-up words in a language without a fitted model: all go into one space, whose index
is on one primary.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp

from tests.support.factories import edited, story

PAUSE_S = 0.05
GIVE_UP_S = 60.0
CRAWLERS = 8


@dataclass(slots=True)
class Account:
    """What the crawler saw, and what was there afterwards.

    acknowledged  id -> (verdict, when it was answered, in s of the monotonic clock)
    refusals      answers 503, each followed by the same request again
    longest_s     longest wait for an answer that counts, repetitions included
    lost          acknowledged articles that cannot be read any more
    changed       ids whose stored verdict is not the one that was answered
    two_new       pairs of which both were called new
    """

    acknowledged: dict[str, tuple[str, float]] = field(default_factory=dict)
    refusals: int = 0
    longest_s: float = 0.0
    lost: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    two_new: int = 0

    def lost_after(self, instant_s: float) -> int:
        """How many of the lost had been acknowledged after ``instant_s``."""
        return sum(self.acknowledged[id_][1] > instant_s for id_ in self.lost)


class Crawler:
    """Posts pairs to a server at ``url`` until told to stop; whatever is refused is sent again."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.account = Account()
        self._session, self._url = session, url
        self._next = 0
        self._stopped = False

    async def through(
        self, fault: Callable[[], Awaitable[None]], *, before_s: float, after_s: float
    ) -> Account:
        """Crawl for ``before_s``, let the fault happen, crawl ``after_s`` longer, and draw up the account."""
        crawlers = [asyncio.create_task(self._crawl()) for _ in range(CRAWLERS)]
        await asyncio.sleep(before_s)
        await fault()
        await asyncio.sleep(after_s)
        self._stopped = True
        await asyncio.gather(*crawlers)
        await self._audit()
        return self.account

    async def post(self, id_: str, text: str) -> str:
        """One article until it is answered; the verdict."""
        body = {"id": id_, "text": text, "title": f"Report {id_}", "lang": "eo"}
        started_s = time.monotonic()
        while True:
            async with self._session.post(f"{self._url}/v1/articles", json=body) as answer:
                if answer.status in (200, 201):
                    verdict = str((await answer.json())["verdict"])
                    break
                assert answer.status == 503, await answer.text()
                assert "Retry-After" in answer.headers
            self.account.refusals += 1
            assert time.monotonic() < started_s + GIVE_UP_S, f"{id_} was refused for {GIVE_UP_S} s"
            await asyncio.sleep(PAUSE_S)
        now_s = time.monotonic()
        self.account.longest_s = max(self.account.longest_s, now_s - started_s)
        self.account.acknowledged[id_] = verdict, now_s
        return verdict

    async def _crawl(self) -> None:
        while not self._stopped:
            pair, self._next = self._next, self._next + 1
            text = story(pair, sentences=25)
            verdicts = [await self.post(f"{pair}-0", text), await self.post(f"{pair}-1", edited(text, pair))]
            self.account.two_new += verdicts == ["new", "new"]

    async def _audit(self) -> None:
        for id_, (verdict, _) in self.account.acknowledged.items():
            async with self._session.get(f"{self._url}/v1/articles/{id_}") as answer:
                if answer.status in (404, 410):
                    self.account.lost.append(id_)
                else:
                    assert answer.status == 200, await answer.text()
                    if (await answer.json())["verdict"] != verdict:
                        self.account.changed.append(id_)
