"""Screenshots of the pages, in two widths and two color schemes.

scripts/screenshots                                the demo and more invented stories, into docs/screenshots
scripts/screenshots --window FILE... --out DIR     dated archives, for example real news
scripts/screenshots --url URL [--key KEY] --out DIR    a running service

Archives are replayed under a virtual clock that ends now; one that is missing is skipped.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.async_api import Browser, async_playwright

from aggregator.app import Service
from aggregator.domain import Article
from aggregator.events.desks import Desk
from tests.browser.chromium import CHROMIUM, FLAGS
from tests.browser.page_paths import page_paths
from tests.browser.replayed_service import (
    SETTINGS,
    Clock,
    archive_articles,
    demo_articles,
    in_order,
    replayed,
)

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ROOT / "docs" / "screenshots"
WIDTHS = {"1280": (1280, 860), "390": (390, 844)}
MAX_HEIGHT = 4000  # of a picture with --full; a list of 300 articles is taller
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
ALL_VARIANTS = frozenset({"1280-light", "1280-dark", "390-light", "390-dark"})
# Pictures of the documentation, which the repository has; those of the other pages are made with --out.
DOCUMENTED = {
    **dict.fromkeys(("compare", "health", "list", "report"), ALL_VARIANTS),
    **dict.fromkeys(("desk", "event-first", "search", "sources"), frozenset({"1280-light", "390-dark"})),
}


async def make_desks(service: Service) -> None:
    """A desk for the most frequent terms of the events, with two targets, and one for large events."""
    events = await service.events.repository.list_events(limit=50)
    terms = [term for term, _ in Counter(term for event in events for term in event.terms[:2]).most_common(3)]
    at_ms = service.clock()
    await service.events.desks.create(Desk("", "Everything large", at_ms, alert_size=100))
    desk, _ = await service.events.desks.create(
        Desk(
            "", "Front page", at_ms + 1, terms=tuple(terms), alert_size=30, quiet_from="22:00",
            quiet_until="06:00", quiet_size=100,
        )
    )  # fmt: skip
    subscribe = service.events.subscriptions.subscribe
    await subscribe("desk@newsroom.example", (), "standard", at_ms, kind="mail", desk=desk.id)
    await subscribe("https://chat.newsroom.example/hooks/invented", (), "slack", at_ms, desk=desk.id)


def shrink(file: Path) -> None:
    """Convert to a palette of 256 colors: a third of the bytes."""
    with Image.open(file) as image:
        palette_image = image.convert("RGB").quantize(
            256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    palette_image.save(file, optimize=True)


async def capture(
    browser: Browser, url: str, paths: Mapping[str, str], args: argparse.Namespace, headers: Mapping[str, str]
) -> None:
    """Every page in both widths and both color schemes."""
    for scheme in SCHEMES:
        for width, (w, h) in WIDTHS.items():
            context = await browser.new_context(
                viewport={"width": w, "height": h},
                color_scheme=scheme,
                device_scale_factor=1,
                extra_http_headers=dict(headers),
            )
            page = await context.new_page()
            for name, path in paths.items():
                if args.out == DOCUMENTS and f"{width}-{scheme}" not in DOCUMENTED.get(name, frozenset()):
                    continue
                await page.goto(url + path)
                await page.evaluate("document.fonts.ready")
                file = args.out / f"{name}-{width}-{scheme}.png"
                if args.full:
                    height = await page.evaluate("document.documentElement.scrollHeight")
                    await page.set_viewport_size({"width": w, "height": min(max(h, height), MAX_HEIGHT)})
                await page.screenshot(path=file)
                await page.set_viewport_size({"width": w, "height": h})
                shrink(file)
            await context.close()


def window_articles(args: argparse.Namespace, now_ms: int) -> list[Article]:
    """The articles of the archives, those of missing files left out with a message."""
    present = [window for window in args.window if Path(window.partition("@")[0]).exists()]
    for missing in set(args.window) - set(present):
        print(f"skipped, no such file: {missing}")
    return in_order(a for window in present for a in archive_articles(window, args.days, now_ms))


@asynccontextmanager
async def service_of(args: argparse.Namespace) -> AsyncIterator[str]:
    """URL of the service to look at; "" without one."""
    if args.url:
        yield args.url
        return
    clock = Clock()
    articles = window_articles(args, clock()) if args.window else demo_articles(clock())
    if not articles:
        yield ""
        return
    settings = replace(SETTINGS, outlets_file=args.outlets_file)
    async with replayed(articles, clock, settings) as (service, url):
        await make_desks(service)
        print(f"{len(articles)} articles replayed")
        yield url


async def main(args: argparse.Namespace) -> None:
    headers = {"Authorization": f"Bearer {args.key}"} if args.key else {}
    async with service_of(args) as url:
        if not url:
            return
        args.out.mkdir(parents=True, exist_ok=True)
        paths = await page_paths(url, headers)
        paths = {n: path for n, path in paths.items() if not args.only or n in args.only}
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            await capture(browser, url, paths, args, headers)
            await browser.close()
    print(f"screenshots of {', '.join(paths)} in {args.out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--window",
        nargs="+",
        metavar="FILE[@TIME]",
        help="dated archives (.jsonl or .jsonl.gz), each to end now; TIME, RFC 3339: its end instead of its "
        "last article",
    )
    parser.add_argument("--days", type=float, default=2.0, help="length of each window (default: 2)")
    parser.add_argument("--url", help="a running service instead")
    parser.add_argument("--key", help="access key of that service")
    parser.add_argument("--outlets-file", default="", help="the setting outlets_file of the replayed service")
    parser.add_argument("--only", nargs="+", metavar="PAGE", help="only these pages, for example list report")
    parser.add_argument("--out", type=Path, default=DOCUMENTS)
    parser.add_argument(
        "--full",
        action="store_true",
        help="whole pages, to 4000 pixels",
    )
    asyncio.run(main(parser.parse_args()))
