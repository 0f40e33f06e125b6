"""What a service gets to hear in a long night: posts, repeats, questions, listeners, and callers that hang up."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import aiohttp

from tests.chaos.crawl import articles, report

TALKERS = 12
REPORTS = 18  # of a matter that breaks, one after another
BREAKS_S = 10.0
MATTERS = 10_000  # of one seed
REMEMBERED = 500


class Traffic:
    """About ``rate`` requests a second to one service until ``stop``. ``answers`` counts by kind and status.

    Whatever the rate, a matter breaks every ten seconds, the first at once: with its reports alone it is an event.
    """

    def __init__(self, url: str, rate: float, seed: int = 1) -> None:
        self.answers: Counter[str] = Counter()
        self._url, self._rate = url, rate
        self._rng = random.Random(seed)
        self._stock = articles()
        self._seen: list[dict[str, str]] = []
        self._matters = itertools.count(MATTERS * seed)
        self._next_s = self._breaks_s = 0.0
        self._stopped = False
        self._kinds = {
            self._post: 40,
            self._repeat: 10,
            self._batch: 2,
            self._look: 20,
            self._page: 6,
            self._listen: 4,
            self._hang_up: 6,
            self._take_down: 6,
        }

    def stop(self) -> None:
        """No new requests."""
        self._stopped = True

    async def run(self) -> None:
        """Until stopped; leaves no connection behind."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
            self._session = session
            await asyncio.gather(*(self._talk() for _ in range(TALKERS)))

    async def _talk(self) -> None:
        while not self._stopped:
            now_s = time.monotonic()
            self._next_s = max(self._next_s, now_s - 0.1) + 1 / self._rate
            await asyncio.sleep(max(0.0, self._next_s - now_s))
            await self._chosen()()

    def _chosen(self) -> Callable[[], Awaitable[None]]:
        now_s = time.monotonic()
        if now_s >= self._breaks_s:
            self._breaks_s = now_s + BREAKS_S
            return self._break
        (ask,) = self._rng.choices(list(self._kinds), list(self._kinds.values()))
        return ask

    async def _ask(self, kind: str, method: str, path: str, **more: object) -> None:
        async with self._session.request(method, self._url + path, **more) as answer:  # type: ignore[arg-type]
            await answer.read()
            self.answers[f"{kind} {answer.status}"] += 1

    def _fresh(self) -> dict[str, str]:
        _, article = next(self._stock)
        if len(self._seen) < REMEMBERED:
            self._seen.append(article)
        else:
            self._seen[self._rng.randrange(REMEMBERED)] = article
        return article

    async def _post(self) -> None:
        await self._ask("post", "POST", "/v1/articles", json=self._fresh())

    async def _break(self) -> None:
        matter = next(self._matters)
        for number in range(REPORTS):
            await self._ask("report", "POST", "/v1/articles", json=report(matter, number))

    async def _repeat(self) -> None:
        if self._seen:
            await self._ask("repeat", "POST", "/v1/articles", json=self._rng.choice(self._seen))

    async def _batch(self) -> None:
        lines = "\n".join(json.dumps(self._fresh()) for _ in range(8))
        await self._ask("batch", "POST", "/v1/articles/batch", data=lines)

    async def _look(self) -> None:
        if self._seen:
            id_ = self._rng.choice(self._seen)["id"]
            path = self._rng.choice(("", "/copies", "/related"))
            await self._ask("look", "GET", f"/v1/articles/{id_}{path}")

    async def _page(self) -> None:
        await self._ask("page", "GET", self._rng.choice(("/", "/v1/events", "/v1/events.atom", "/metrics")))

    async def _listen(self) -> None:
        """A listener that leaves after a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3), self._session.get(f"{self._url}/v1/events/stream") as stream:
                await stream.content.read()
        self.answers["listener"] += 1

    async def _hang_up(self) -> None:
        """A caller that goes away within its request, or before its answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._rng.uniform(0.0005, 0.01)):
                await self._ask("hang up", "POST", "/v1/articles", json=self._fresh())
        self.answers["hung up"] += 1

    async def _take_down(self) -> None:
        if self._seen:
            id_ = self._rng.choice(self._seen)["id"]
            await self._ask("delete", "DELETE", f"/v1/articles/{id_}")
