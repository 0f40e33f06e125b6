"""A service in memory after replaying a stream under a virtual clock that ends now."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from aiohttp import web

from aggregator.app import Service, open_service
from aggregator.domain import Answer, Article
from aggregator.http.app_keys import METRICS
from aggregator.http.metrics import Metrics
from aggregator.http.server import make_app, make_runner
from aggregator.index.upkeep import clock_guard
from aggregator.runtime import demo
from aggregator.settings import Settings
from aggregator.time_units import DAY_MS
from aggregator_archive.rows import read_rows
from tests.support.hang_limit import HANG_LIMIT_S

TICK_MS = 60_000
# The timeout allows for a machine that is busy with the replay.
SETTINGS = Settings(store_url="memory", store_texts=True, request_timeout_seconds=HANG_LIMIT_S)


class Clock:
    """Virtual clock in milliseconds; the wall clock while ``now_ms`` is None."""

    def __init__(self) -> None:
        self.now_ms: int | None = None

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 if self.now_ms is None else self.now_ms


def demo_articles(now_ms: int) -> list[Article]:
    """The demo and its other stories, ending now."""
    late_ms = 60_000 * min(row["minutes_ago"] for row in demo.load_rows())
    now = datetime.fromtimestamp((now_ms + late_ms) / 1000).astimezone()
    articles = [_article(demo.article_body(row, now)) for row in demo.load_rows()]
    now = datetime.fromtimestamp(now_ms / 1000).astimezone()
    articles += [_article(demo.article_body(row, now)) for row in demo.load_rows("headlines.jsonl")]
    return in_order(articles)


def _article(body: dict[str, Any]) -> Article:
    published_ms = int(datetime.fromisoformat(body.pop("published_at")).timestamp() * 1000)
    return Article(**body, published_at_ms=published_ms)


def archive_articles(window: str, days: float, now_ms: int) -> list[Article]:
    """The last ``days`` of a dated archive, shifted to end now. ``window``: FILE or FILE@TIME, its end."""
    file, _, until = window.partition("@")
    dated = [(_ms(row["published_at"]), row) for row in read_rows([file]) if row.get("published_at")]
    end_ms = _ms(until) if until else max(at_ms for at_ms, _ in dated)
    names = ("id", "title", "text", "url", "source", "lang")
    return [
        Article(**{n: row[n] for n in names if row.get(n)}, published_at_ms=at_ms + now_ms - end_ms)
        for at_ms, row in dated
        if end_ms - days * DAY_MS <= at_ms <= end_ms
    ]


def in_order(articles: Iterable[Article]) -> list[Article]:
    """Articles in order of publication."""
    return sorted(articles, key=lambda article: article.published_at_ms or 0)


def _ms(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1000)


async def submit(service: Service, articles: Sequence[Article], metrics: Metrics) -> None:
    """Submit a batch and record its metrics, as the batch endpoint does."""
    for answer in await service.articles.ingest.submit_many(articles):
        if isinstance(answer, Answer):
            metrics.record_answer(answer)


async def replay(service: Service, articles: Sequence[Article], clock: Clock, metrics: Metrics) -> None:
    """Submit every article at its publication time; run the detector once a minute."""
    tick_ms = 0
    batch: list[Article] = []
    for article in articles:
        at_ms = article.published_at_ms or 0
        if at_ms >= tick_ms:
            clock.now_ms = tick_ms or at_ms
            await submit(service, batch, metrics)
            await service.background.scheduler.detector.run_once()
            tick_ms, batch = at_ms + TICK_MS, []
        batch.append(article)
    clock.now_ms = (articles[-1].published_at_ms or 0) + 1
    await submit(service, batch, metrics)
    await service.background.scheduler.detector.run_once()
    clock.now_ms = None
    await service.background.scheduler.detector.run_once()
    await service.background.source_collector.run_once()


@asynccontextmanager
async def replayed(
    articles: Sequence[Article], clock: Clock, settings: Settings = SETTINGS
) -> AsyncIterator[tuple[Service, str]]:
    """A service after the replay, and its URL."""
    # The virtual days take seconds, which would be a leap of the wall clock.
    clock_guard.boot_clock_ms = clock
    async with open_service(settings, clock=clock) as service:
        app = make_app(service)
        await replay(service, articles, clock, app[METRICS])
        runner = make_runner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        service.background.scheduler.start()  # the health page shows a running detector
        try:
            yield service, f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await service.background.scheduler.stop()
            await runner.cleanup()
