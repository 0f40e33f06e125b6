"""Crawlers that post groups of near-copies and repeat every post until it is acknowledged."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterator

from tests.chaos.api import Refused
from tests.chaos.deployment import Deployment
from tests.chaos.ledger import Ledger
from tests.support.factories import edited

CRAWLERS = 24
COPIES = 3
PAUSE_S = 0.05
REPEAT_S = 0.2  # after a refusal
PAGE_EVERY = 8  # groups; pages are analyzed in worker processes
WORDS = 100
REPORT_SEED = 1_000_000_000  # first seed of reports
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "ar", "en")]


def generated_words(seed: int, count: int, syllables: int) -> list[str]:
    """Generated words, nearly all distinct."""
    parts = random.Random(seed).choices(_SYLLABLES, k=syllables * count)
    return ["".join(parts[i : i + syllables]) for i in range(0, len(parts), syllables)]


VOCABULARY = generated_words(0, 20_000, 4)


def random_words(seed: int, count: int) -> list[str]:
    """Words of one vocabulary: texts of two seeds share one or two words and no phrase."""
    return random.Random(seed).choices(VOCABULARY, k=count)


def articles() -> Iterator[tuple[int, dict[str, str]]]:
    """Endless (group, article): a story of about 100 words and two edited copies, then the next group."""
    for group in itertools.count():
        words = random_words(group, WORDS)
        text, title = " ".join(words), " ".join(words[:6])
        for copy in range(COPIES):
            body = edited(text, COPIES * group + copy, changes=2) if copy else text
            yield group, {"id": f"{group}-{copy}", "title": title, "text": body, "lang": "eo"}


class Crawl:
    """Posts about ``rate`` articles per second while its context (``async with``) is open."""

    def __init__(self, deployment: Deployment, ledger: Ledger, rate: float) -> None:
        self._deployment, self._ledger, self._rate = deployment, ledger, rate
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

    def raise_failures(self) -> None:
        """Raise the error of a crawler that has ended."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def post(self, article: dict[str, str], group: int) -> None:
        """Post an article to a random service, repeatedly until it is acknowledged."""
        self._ledger.posted[article["id"]] = group
        while True:
            try:
                verdict = await self._deployment.any_api().submit(article)
            except Refused as refused:
                self._ledger.refuse(refused)
                await asyncio.sleep(REPEAT_S)
            else:
                self._ledger.acknowledge(article["id"], verdict)
                return

    async def _crawl(self) -> None:
        while not self._stopped:
            group, article = next(self._stock)
            now_s = time.monotonic()
            self._next_s = max(self._next_s, now_s - PAUSE_S) + 1 / self._rate
            await asyncio.sleep(max(0.0, self._next_s - now_s))
            await self.post(_as_page(article) if group % PAGE_EVERY == 0 else article, group)


def _as_page(article: dict[str, str]) -> dict[str, str]:
    """The same article as HTML."""
    page = f"<html><body><article><p>{article['text']}</p></article></body></html>"
    return {**{name: value for name, value in article.items() if name != "text"}, "html": page}


def report(topic: int, number: int) -> dict[str, str]:
    """Report ``number`` on a topic: headline words that only this topic has, a unique text and source.

    On the first day of a stream, reports that share a source or none need more in common to be an event.
    """
    subject = " ".join(generated_words(REPORT_SEED + topic, 4, 5))
    text = f"{subject} {subject}. {' '.join(random_words(2 * REPORT_SEED + 1000 * topic + number, 30))}"
    id_, title, source = f"m{topic}-{number}", f"{subject} {number}", f"Outlet {number}"
    return {"id": id_, "title": title, "source": source, "text": text, "lang": "eo"}
