"""Pictures of the editors' pages: a stream replayed under a virtual clock that ends now, then a browser.

scripts/screenshots                              the project's own demonstration, into docs/screenshots
scripts/screenshots --window FILE --out DIR      any dated archive, e.g. to judge the pages with real news
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import yarl
from aiohttp import web
from PIL import Image
from playwright.async_api import Browser, async_playwright

from aggregator.app import Service, open_service
from aggregator.domain import Answer, Article
from aggregator.http.app import make_app
from aggregator.http.app_keys import METRICS
from aggregator.http.metrics.registry import Metrics
from aggregator.http.server import make_runner
from aggregator.offline.jsonl import read_rows
from aggregator.runtime import demo
from aggregator.settings import Settings
from tests.browser.chromium import CHROMIUM, FLAGS
from tests.browser.newsday import more

ROOT = Path(__file__).resolve().parents[2]
TICK_MS = 60_000
WIDTHS = {"1280": (1280, 860), "390": (390, 844)}
SCHEMES = ("light", "dark")


class Clock:
    """Milliseconds, as told; after the replay those of the wall."""

    def __init__(self) -> None:
        self.now_ms: int | None = None

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 if self.now_ms is None else self.now_ms


def demonstration(now_ms: int) -> list[Article]:
    """The project's own stream and some more of our own, the end now."""
    late_ms = 60_000 * min(row["minutes_ago"] for row in demo.load_rows())
    now = datetime.fromtimestamp((now_ms + late_ms) / 1000).astimezone()
    articles = [_article(demo.article_body(row, now)) for row in demo.load_rows()]
    articles += map(_article, more(datetime.fromtimestamp(now_ms / 1000).astimezone()))
    return sorted(articles, key=lambda article: article.published_at_ms or 0)


def _article(body: dict[str, Any]) -> Article:
    published_ms = int(datetime.fromisoformat(body.pop("published_at")).timestamp() * 1000)
    return Article(**body, published_at_ms=published_ms)


def recorded(file: str, until: str | None, days: float, now_ms: int) -> list[Article]:
    """The last ``days`` before ``until`` of a dated archive, moved so that they end now."""
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
    """As the batch route does."""
    for answer in await service.ingest.submit_many(articles):
        if isinstance(answer, Answer):
            metrics.record_answer(answer)


async def replay(service: Service, articles: Sequence[Article], clock: Clock, metrics: Metrics) -> None:
    """Every article at the time of its publication, the detector once a minute."""
    tick_ms, batch = 0, []
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


@asynccontextmanager
async def replayed(articles: Sequence[Article], clock: Clock) -> AsyncIterator[tuple[Service, str]]:
    """A service in memory that has seen the articles, and its address."""
    async with open_service(Settings(store_url="memory", store_texts=True), clock=clock) as service:
        app = make_app(service)
        await replay(service, articles, clock, app[METRICS])
        runner = make_runner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield service, f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def pages_of(service: Service) -> dict[str, str]:
    """Name -> path of what is photographed."""
    events = await service.events.list_events(limit=50)
    found = {"list": "/", "health": "/health", "lookup": "/lookup"}
    largest = max((e for e in events if e.status != "closed"), key=lambda e: e.size, default=None)
    if largest is not None:
        found["report"] = f"/events/{largest.id}"
    for item in await service.index.recent(500):
        stored = (await service.index.get_many([item.id])).get(item.id)
        match = stored.outcome.match if stored else None
        if match is not None and match.rule == "overlap" and stored:
            found["compare"] = str(yarl.URL("/compare").with_query(a=match.canonical_id, b=item.id))
            found["lookup"] = str(yarl.URL("/lookup").with_query(q=item.id))
            if stored.outcome.updated_figures:
                break
    return found


def shrink(file: Path) -> None:
    """A palette is enough for a page, and a third of the bytes."""
    with Image.open(file) as picture:
        few = picture.convert("RGB").quantize(
            256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    few.save(file, optimize=True)


async def photograph(browser: Browser, url: str, paths: dict[str, str], out: Path, full: bool) -> None:
    """Every page in both widths and both schemes."""
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
    articles = recorded(args.window, args.until, args.days, now_ms) if args.window else demonstration(now_ms)
    args.out.mkdir(parents=True, exist_ok=True)
    async with replayed(articles, clock) as (service, url), async_playwright() as playwright:
        paths = await pages_of(service)
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        await photograph(browser, url, paths, args.out, args.full)
        await browser.close()
    print(f"{len(articles)} articles; pictures of {', '.join(paths)} in {args.out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--window", help="a dated archive (.jsonl or .jsonl.gz)")
    parser.add_argument("--until", help="its last moment, RFC 3339")
    parser.add_argument("--days", type=float, default=2.0, help="how much of it before that")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "screenshots")
    parser.add_argument("--full", action="store_true", help="whole pages, not what a window shows")
    asyncio.run(main(parser.parse_args()))
