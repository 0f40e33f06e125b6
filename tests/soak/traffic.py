"""Traffic of the soak test: posts, repeats, queries, event listeners, and clients that disconnect."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import aiohttp

from tests.chaos.crawl import articles, report

CLIENTS = 12
REPORTS = 18  # per topic, one after another
TOPIC_INTERVAL_S = 10.0
TOPICS_PER_SEED = 10_000
REMEMBERED = 500  # articles for repeats and queries


class Traffic:
    """About ``rate`` requests/s to one service until ``stop``; ``responses`` counts by kind and status.

    At any rate, the reports of a new topic are posted every 10 s, the first ones at once; they make an event.
    """

    def __init__(self, url: str, rate: float, seed: int = 1) -> None:
        self.responses: Counter[str] = Counter()
        self._url, self._rate = url, rate
        self._rng = random.Random(seed)
        self._stock = articles()
        self._seen: list[dict[str, str]] = []
        self._topics = itertools.count(TOPICS_PER_SEED * seed)
        self._next_s = self._next_topic_s = 0.0
        self._stopped = False
        self._kinds = {
            self._post: 40,
            self._repeat: 10,
            self._batch: 2,
            self._query: 20,
            self._page: 6,
            self._listen: 4,
            self._hang_up: 6,
            self._delete: 6,
        }

    def stop(self) -> None:
        """Send no further requests."""
        self._stopped = True

    async def run(self) -> None:
        """Send requests until stopped; closes all connections."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
            self._session = session
            await asyncio.gather(*(self._client() for _ in range(CLIENTS)))

    async def _client(self) -> None:
        while not self._stopped:
            now_s = time.monotonic()
            self._next_s = max(self._next_s, now_s - 0.1) + 1 / self._rate
            await asyncio.sleep(max(0.0, self._next_s - now_s))
            await self._choose_request()()

    def _choose_request(self) -> Callable[[], Awaitable[None]]:
        now_s = time.monotonic()
        if now_s >= self._next_topic_s:
            self._next_topic_s = now_s + TOPIC_INTERVAL_S
            return self._report_topic
        (send,) = self._rng.choices(list(self._kinds), list(self._kinds.values()))
        return send

    async def _send(self, kind: str, method: str, path: str, **options: Any) -> None:
        async with self._session.request(method, self._url + path, **options) as response:
            await response.read()
            self.responses[f"{kind} {response.status}"] += 1

    def _new_article(self) -> dict[str, str]:
        _, article = next(self._stock)
        if len(self._seen) < REMEMBERED:
            self._seen.append(article)
        else:
            self._seen[self._rng.randrange(REMEMBERED)] = article
        return article

    async def _post(self) -> None:
        await self._send("post", "POST", "/v1/articles", json=self._new_article())

    async def _report_topic(self) -> None:
        topic = next(self._topics)
        for number in range(REPORTS):
            await self._send("report", "POST", "/v1/articles", json=report(topic, number))

    async def _repeat(self) -> None:
        if self._seen:
            await self._send("repeat", "POST", "/v1/articles", json=self._rng.choice(self._seen))

    async def _batch(self) -> None:
        lines = "\n".join(json.dumps(self._new_article()) for _ in range(8))
        await self._send("batch", "POST", "/v1/articles/batch", data=lines)

    async def _query(self) -> None:
        if self._seen:
            id_ = self._rng.choice(self._seen)["id"]
            path = self._rng.choice(("", "/copies", "/related"))
            await self._send("query", "GET", f"/v1/articles/{id_}{path}")

    async def _page(self) -> None:
        await self._send("page", "GET", self._rng.choice(("/", "/v1/events", "/v1/events.atom", "/metrics")))

    async def _listen(self) -> None:
        """Open the event stream and disconnect after 0.3 s."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3), self._session.get(f"{self._url}/v1/events/stream") as stream:
                await stream.content.read()
        self.responses["listener"] += 1

    async def _hang_up(self) -> None:
        """Disconnect during the request or before the response."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._rng.uniform(0.0005, 0.01)):
                await self._send("hang up", "POST", "/v1/articles", json=self._new_article())
        self.responses["hung up"] += 1

    async def _delete(self) -> None:
        if self._seen:
            id_ = self._rng.choice(self._seen)["id"]
            await self._send("delete", "DELETE", f"/v1/articles/{id_}")
