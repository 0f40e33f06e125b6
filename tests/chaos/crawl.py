"""Crawlers that post groups of near-copies to both replicas and repeat every post until it is answered."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterator

from aggregator.clients.decision import Unavailable
from tests.chaos.deployment import Deployment
from tests.chaos.ledger import Ledger
from tests.support.factories import edited

CRAWLERS = 24
COPIES = 3
PAUSE_S = 0.05
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
        """Post an article to a random replica, repeatedly until one answers."""
        self._ledger.posted[article["id"]] = group
        while True:
            try:
                client = self._deployment.rng.choice(self._deployment.replicas).client
                decision = await client.submit(article)
            except Unavailable:
                self._ledger.refusals += 1
                await asyncio.sleep(PAUSE_S)
            else:
                self._ledger.acknowledge(article["id"], decision.verdict)
                return

    async def _crawl(self) -> None:
        while not self._stopped:
            group, article = next(self._stock)
            now_s = time.monotonic()
            self._next_s = max(self._next_s, now_s - PAUSE_S) + 1 / self._rate
            await asyncio.sleep(max(0.0, self._next_s - now_s))
            await self.post(article, group)


def report(topic: int, number: int) -> dict[str, str]:
    """Report ``number`` on a topic: headline words that only this topic has, and a unique text."""
    subject = " ".join(generated_words(REPORT_SEED + topic, 4, 5))
    text = f"{subject} {subject}. {' '.join(random_words(2 * REPORT_SEED + 1000 * topic + number, 30))}"
    return {"id": f"m{topic}-{number}", "title": f"{subject} {number}", "text": text, "lang": "eo"}
