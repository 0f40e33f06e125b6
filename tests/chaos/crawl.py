"""Crawlers that post near-copies at the same moment to both replicas, each until it is answered."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterator

from aggregator.clients.decision import Unavailable
from tests.chaos.ledger import Ledger
from tests.chaos.newsroom_site import Site
from tests.support.factories import edited

CRAWLERS = 24
COPIES = 3
PAUSE_S = 0.05
WORDS = 100
FRESH = 1_000_000_000  # seeds of reports begin here
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "ar", "en")]


def coined(seed: int, count: int, syllables: int) -> list[str]:
    """Made-up words; hardly any is made twice."""
    parts = random.Random(seed).choices(_SYLLABLES, k=syllables * count)
    return ["".join(parts[i : i + syllables]) for i in range(0, len(parts), syllables)]


LANGUAGE = coined(0, 20_000, 4)


def wording(seed: int, count: int) -> list[str]:
    """Words of one language, as all news has: two seeds share a word or two, and no phrase."""
    return random.Random(seed).choices(LANGUAGE, k=count)


def articles() -> Iterator[tuple[int, dict[str, str]]]:
    """(group, article) without end: a story and two edited copies, then the next. About a hundred words each."""
    for group in itertools.count():
        words = wording(group, WORDS)
        text, title = " ".join(words), " ".join(words[:6])
        for copy in range(COPIES):
            body = edited(text, COPIES * group + copy, changes=2) if copy else text
            yield group, {"id": f"{group}-{copy}", "title": title, "text": body, "lang": "eo"}


class Crawl:
    """Use as ``async with``; posts about ``rate`` articles a second meanwhile."""

    def __init__(self, site: Site, ledger: Ledger, rate: float) -> None:
        self._site, self._ledger, self._rate = site, ledger, rate
        self._stock = articles()
        self._next_s = 0.0
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Crawl:
        self._tasks = [asyncio.create_task(self._crawl()) for _ in range(CRAWLERS)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopped = True
        await asyncio.gather(*self._tasks)

    def watch(self) -> None:
        """Raises what a crawler met that it did not expect."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def post(self, article: dict[str, str], group: int) -> None:
        """One article to either replica, again and again until one answers."""
        self._ledger.posted[article["id"]] = group
        while True:
            try:
                client = self._site.rng.choice(self._site.replicas).client
                decision = await client.submit(article)
            except Unavailable:
                self._ledger.refusals += 1
                await asyncio.sleep(PAUSE_S)
            else:
                self._ledger.enter(article["id"], decision.verdict)
                return

    async def _crawl(self) -> None:
        while not self._stopped:
            group, article = next(self._stock)
            now_s = time.monotonic()
            self._next_s = max(self._next_s, now_s - PAUSE_S) + 1 / self._rate
            await asyncio.sleep(max(0.0, self._next_s - now_s))
            await self.post(article, group)


def report(matter: int, number: int) -> dict[str, str]:
    """One of many reports on a matter: the same headline words, which nothing else has, and a text of its own."""
    subject = " ".join(coined(FRESH + matter, 4, 5))
    text = f"{subject} {subject}. {' '.join(wording(2 * FRESH + 1000 * matter + number, 30))}"
    return {"id": f"m{matter}-{number}", "title": f"{subject} {number}", "text": text, "lang": "eo"}
