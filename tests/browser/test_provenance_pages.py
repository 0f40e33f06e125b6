"""Provenance and sources pages: who had a text first, layout, accessibility, and use without scripts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from aggregator.app import open_service
from aggregator.settings import Settings
from tests.browser.pages import accessibility_violations, opened, overflow_px
from tests.support.factories import commit_event, event
from tests.support.fake_service import Client, serving

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TEXT = (
    "The harbour bridge of Brackwater was closed on Friday after gusts of 140 km/h damaged two cables. "
    "Engineers will look at every cable before lorries may cross again, the port authority said. Ferries "
    "carry passengers meanwhile, and the night train ends at the northern pier until further notice."
)
OWN_TEXT = (
    "Nobody crosses the strait by car any more: a storm has torn cables at Brackwater, and the "
    "mayor expects weeks of repairs. Traders of the old town fear for the summer market, which needs lorries."
)
# Id, headline, outlet, minutes after the first, text.
ARTICLES = (
    ("a", "Harbour bridge closed", "Estmark Radio", 0, TEXT),
    ("b", "Bridge shut after storm", "Coastline News", 12, TEXT.replace("140", "180")),
    ("c", "Storm closes bridge", "Quay News", 90, TEXT.replace("Ferries carry ", "")),
    ("d", "Crossing closed for weeks", "الصحيفة", 120, OWN_TEXT),
)  # fmt: skip
PATHS = (
    "/articles/b/provenance",
    "/events/bridge/provenance",
    "/sources",
    "/sources?q=news&sort=copies",
    "/sources/Coastline%20News",
)


@pytest_asyncio.fixture(loop_scope="session")
async def client() -> AsyncIterator[Client]:
    """A service that stores one text of three outlets and another one, and an event about them."""
    async with (
        open_service(Settings(store_url="memory", store_texts=True)) as service,
        serving(service) as http,
    ):
        began = datetime.now(UTC) - timedelta(hours=3)
        for id_, title, source, minutes, text in ARTICLES:
            published = (began + timedelta(minutes=minutes)).isoformat()
            body = {"id": id_, "title": title, "source": source, "published_at": published, "text": text}
            assert (await http.post("/v1/articles", json=body)).status in (200, 201)
        began_ms = int(began.timestamp() * 1_000_000) // 1000
        times = tuple(began_ms + minutes * 60_000 for *_, minutes, _ in ARTICLES)
        ids = [id_ for id_, *_ in ARTICLES]
        first = (began_ms, "a", "Estmark Radio")
        found = event("bridge", "Harbour bridge closed after storm", ids, times=times, first=first)
        await commit_event(service.events.repository, "fired", found, found.last_seen_ms)
        await service.background.source_collector.run_once()
        yield http


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
async def test_the_pages_are_accessible_and_fit(
    browser: Browser, client: Client, width: int, scheme: Any
) -> None:
    """With open details; no severe finding of axe, no horizontal scrolling."""
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    async with opened(browser, client.make_url("/sources"), **options) as page:
        for path in PATHS:
            await page.goto(str(client.make_url(path)))
            for details in await page.locator("main details:not([open]) > summary").all():
                await details.click()
            assert await accessibility_violations(page) == [], path
            assert await overflow_px(page) <= 0, path
            tables = await page.locator(".scroll-table").evaluate_all(
                "all => all.map(t => t.scrollWidth - t.clientWidth)"
            )
            assert max(tables, default=0) <= 0, path  # no column is cut off


async def test_who_had_it_first_is_found_without_scripts(browser: Browser, client: Client) -> None:
    """From the report to the first outlet, what a copy changed, and the outlets that copied."""
    async with opened(browser, client.make_url("/events/bridge"), java_script_enabled=False) as page:
        await page.get_by_role("link", name="Who had it first").click()
        await expect(page.locator(".first-box .outlet-name")).to_have_text("Estmark Radio")
        outlets = await page.locator("#outlets ~ ol .step-outlet").all_inner_texts()
        assert outlets == ["Estmark Radio", "Coastline News copy", "Quay News copy", "الصحيفة own text"]
        lags = [
            lag.strip().replace("\xa0", " ")
            for lag in await page.locator("#outlets ~ ol .lag").all_inner_texts()
        ]
        assert lags == ["first", "+12 min", "+1 h 30 min", "+2 h"]
        changed = page.locator(".text-lineage li", has_text="Bridge shut after storm").get_by_text(
            "What changed"
        )
        await changed.click()
        await expect(page.get_by_text("New figures: 180")).to_be_visible()

        await page.locator(".first-box").get_by_role("link", name="Estmark Radio").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Estmark Radio", use_inner_text=True)
        copiers = page.locator("section", has=page.get_by_role("heading", name="Had it later, most often"))
        assert {"Coastline News", "Quay News"} <= set(await copiers.get_by_role("link").all_inner_texts())
