"""A day of invented news, decided before a demonstration starts, under a virtual clock.

Events need time: a live demonstration would show all items of a story in one minute. Besides the articles of
``articles.jsonl`` there are four stories in ``headlines.jsonl``: a strike that is voted on and, twelve hours
later, begins, a typhoon in Chinese and a sandstorm in Arabic.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import msgspec

from aggregator.contract.decoding import decode_article
from aggregator.domain import Article
from aggregator.runtime.demo import article_body, load_rows
from aggregator.settings import Settings
from aggregator.time_units import HOUR_MS, MINUTE_MS

# Less than the day after which event detection waits for the clock to settle (``ClockGuard.pause_reason``).
SPAN_MS = 22 * HOUR_MS
STEP_MS = 5 * MINUTE_MS
LIVE_MINUTES = 75  # articles of the last minutes of the stream are left to the live part


def history_articles(now: datetime) -> list[tuple[int, Article]]:
    """(arrival in ms, article) in order of arrival; what was published earlier arrives at the beginning."""
    rows = [row for row in load_rows() if row["minutes_ago"] >= LIVE_MINUTES] + load_rows("headlines.jsonl")
    articles = [decode_article(msgspec.json.encode(article_body(row, now))) for row in rows]
    begin_ms = round(now.timestamp() * 1000) - SPAN_MS
    dated = [(max(begin_ms, article.published_at_ms or 0), article) for article in articles]
    return sorted(dated, key=lambda item: item[0])


async def load_history(settings: Settings) -> int:
    """Store and decide the history, unless the store has articles; the number of its articles."""
    from aggregator.app import open_service

    now = datetime.now(UTC)
    articles = history_articles(now)
    clock_ms = articles[0][0]
    async with open_service(settings, clock=lambda: clock_ms) as service:
        if await service.articles.index.stream.recent_entries(1):
            return 0
        for _, group in itertools.groupby(articles, lambda item: item[0] // STEP_MS):
            items = list(group)
            clock_ms = items[-1][0]
            await service.articles.ingest.submit_many([article for _, article in items])
            await service.background.scheduler.detector.run_once()
        clock_ms = round(now.timestamp() * 1000)
        await service.background.scheduler.detector.run_once()
        await service.background.source_collector.run_once()
    return len(articles)
