"""Screenshots of the pages, after replaying a stream under a virtual clock that ends now.

scripts/screenshots                              the demo and more invented stories, into docs/screenshots
scripts/screenshots --window FILE --out DIR      any dated archive, for example real news
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import yarl
from aiohttp import web
from PIL import Image
from playwright.async_api import Browser, async_playwright

from aggregator.app import Service, open_service
from aggregator.domain import Answer, Article
from aggregator.events.desks.model import Desk
from aggregator.events.detection.model import Event
from aggregator.http.app import make_app
from aggregator.http.app_keys import METRICS
from aggregator.http.metrics.registry import Metrics
from aggregator.http.server import make_runner
from aggregator.index import clock_guard
from aggregator.offline.jsonl import read_rows
from aggregator.runtime import demo
from aggregator.runtime.demo.stories import article_bodies
from aggregator.settings import Settings
from tests.browser.chromium import CHROMIUM, FLAGS

ROOT = Path(__file__).resolve().parents[2]
TICK_MS = 60_000
# The timeout allows for a machine that is busy with the replay.
SETTINGS = Settings(store_url="memory", store_texts=True, request_timeout_seconds=60)
WIDTHS = {"1280": (1280, 860), "390": (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


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
    articles += map(_article, article_bodies(datetime.fromtimestamp(now_ms / 1000).astimezone()))
    return sorted(articles, key=lambda article: article.published_at_ms or 0)


def _article(body: dict[str, Any]) -> Article:
    published_ms = int(datetime.fromisoformat(body.pop("published_at")).timestamp() * 1000)
    return Article(**body, published_at_ms=published_ms)


def archive_articles(file: str, until: str | None, days: float, now_ms: int) -> list[Article]:
    """The last ``days`` before ``until`` of a dated archive, shifted to end now."""
    dated = [(_ms(row["published_at"]), row) for row in read_rows([file]) if row.get("published_at")]
    end_ms = _ms(until) if until else max(at_ms for at_ms, _ in dated)
    kept = [(at_ms, row) for at_ms, row in dated if end_ms - days * 86_400_000 <= at_ms <= end_ms]
    names = ("id", "title", "text", "url", "source", "lang")
    return [
        Article(
            **{n: row[n] for n in names if row.get(n)},
            published_at_ms=at_ms + now_ms - end_ms,
        )
        for at_ms, row in sorted(kept, key=lambda pair: pair[0])
    ]


def _ms(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1000)


async def submit(service: Service, articles: Sequence[Article], metrics: Metrics) -> None:
    """Submit a batch and record its metrics, as the batch endpoint does."""
    for answer in await service.ingest.submit_many(articles):
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
            await service.background.scheduler.tick()
            tick_ms, batch = at_ms + TICK_MS, []
        batch.append(article)
    clock.now_ms = (articles[-1].published_at_ms or 0) + 1
    await submit(service, batch, metrics)
    await service.background.scheduler.tick()
    clock.now_ms = None
    await service.background.scheduler.tick()
    await service.background.source_collector.run_once()


@asynccontextmanager
async def replayed(articles: Sequence[Article], clock: Clock) -> AsyncIterator[tuple[Service, str]]:
    """A service in memory after the replay, and its URL."""
    # The virtual days take seconds, which would be a leap of the wall clock.
    clock_guard.boot_clock_ms = clock
    async with open_service(SETTINGS, clock=clock) as service:
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


async def pages_of(service: Service) -> dict[str, str]:
    """Path of each page to capture, by name."""
    events = await service.events.list_events(limit=50)
    paths = {"list": "/", "health": "/health", "lookup": "/lookup", "sources": "/sources"}
    sources = (await service.sources.report()).sources
    if sources:
        paths["source"] = f"/sources/{quote(max(sources, key=lambda s: s.copies).name, safe='')}"
    largest = max((e for e in events if e.status != "closed"), key=lambda e: e.size, default=None)
    if largest is not None:
        paths["report"] = f"/events/{largest.id}"
        word = max(re.findall(r"\w+", largest.title), key=len)
        paths["search"] = str(yarl.URL("/search").with_query(q=word))
        paths["event-first"] = f"/events/{largest.id}/provenance"
    desk = await make_desk(service, events)
    paths |= {"desks": "/desks", "desk": f"/desks/{desk}", "webhooks": "/webhooks"}
    events_of_story = Counter(event.story_id for event in events)
    if events_of_story and max(events_of_story.values()) > 1:
        paths["story"] = f"/stories/{events_of_story.most_common(1)[0][0]}"
    for item in await service.index.stream.recent(500):
        stored = (await service.index.articles.get_many([item.id])).get(item.id)
        match = stored.outcome.match if stored else None
        if match is not None and match.rule == "overlap" and stored:
            paths["compare"] = str(yarl.URL("/compare").with_query(a=match.canonical_id, b=item.id))
            paths["lookup"] = str(yarl.URL("/lookup").with_query(q=item.id))
            paths["first"] = f"/articles/{quote(item.id, safe='')}/provenance"
            if stored.outcome.updated_figures:
                break
    return paths


async def make_desk(service: Service, events: Sequence[Event]) -> str:
    """Id of a desk for the most frequent terms of the events, with two targets."""
    terms = [term for term, _ in Counter(term for event in events for term in event.terms[:2]).most_common(3)]
    at_ms = service.clock()
    desk, _ = await service.desks.create(
        Desk(
            "", "Front page", at_ms, terms=tuple(terms), alert_size=30, quiet_from="22:00",
            quiet_until="06:00", quiet_size=100,
        )
    )  # fmt: skip
    await service.desks.create(Desk("", "Everything large", at_ms, alert_size=100))
    subscribe = service.webhook_subscriptions.subscribe
    await subscribe("desk@newsroom.example", (), "standard", at_ms, kind="mail", desk=desk.id)
    await subscribe("tgram://123456789:invented/4711", (), "standard", at_ms, kind="apprise", desk=desk.id)
    return desk.id


def shrink(file: Path) -> None:
    """Convert to a palette of 256 colors: a third of the bytes."""
    with Image.open(file) as image:
        palette_image = image.convert("RGB").quantize(
            256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    palette_image.save(file, optimize=True)


async def capture(browser: Browser, url: str, paths: dict[str, str], out: Path, full: bool) -> None:
    """Every page in both widths and both color schemes."""
    for scheme in SCHEMES:
        for width, (w, h) in WIDTHS.items():
            context = await browser.new_context(
                viewport={"width": w, "height": h}, color_scheme=scheme, device_scale_factor=1
            )
            page = await context.new_page()
            for name, path in paths.items():
                await page.goto(url + path)
                await page.evaluate("document.fonts.ready")
                file = out / f"{name}-{width}-{scheme}.png"
                await page.screenshot(path=file, full_page=full)
                shrink(file)
            await context.close()


async def main(args: argparse.Namespace) -> None:
    clock = Clock()
    now_ms = clock()
    articles = (
        archive_articles(args.window, args.until, args.days, now_ms) if args.window else demo_articles(now_ms)
    )
    args.out.mkdir(parents=True, exist_ok=True)
    async with replayed(articles, clock) as (service, url), async_playwright() as playwright:
        paths = await pages_of(service)
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        await capture(browser, url, paths, args.out, args.full)
        await browser.close()
    print(f"{len(articles)} articles; screenshots of {', '.join(paths)} in {args.out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--window", help="a dated archive (.jsonl or .jsonl.gz)")
    parser.add_argument("--until", help="end of the replayed window, RFC 3339 (default: the last article)")
    parser.add_argument("--days", type=float, default=2.0, help="length of the window (default: 2)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "screenshots")
    parser.add_argument("--full", action="store_true", help="capture whole pages instead of one screen")
    asyncio.run(main(parser.parse_args()))
