"""Search on the pages: the box of every page by keyboard, results, filters, and what is not found."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from aggregator.app import Service, open_service
from aggregator.settings import Settings
from tests.browser.pages import opened
from tests.browser.test_front_page import events, post_articles
from tests.support.factories import commit_event, event, story
from tests.support.fake_service import Client, FakeService, serving

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PAGES = ("/", "/events/e1", "/search", "/days/2026-09-21", "/compare", "/health", "/docs")


async def store_dam(service: Service, client: Client) -> None:
    """An event about a dam and two articles, one of another source."""
    for id_, title, source in (
        ("d1", "Kareth dam bursts after heavy rain", "Estmark Radio"),
        ("d2", "Thousands flee as dams fail", "Coastline News"),
        ("b1", "Harbour bridge closed", "Estmark Radio"),
    ):
        text = f"The {story(len(title), 6)} and that was with this of the."
        body = {"id": id_, "title": title, "source": source, "text": text, "lang": "en"}
        assert (await client.post("/v1/articles", json=body)).status == 201
    found = event("dam", "Dam above Kareth bursts", ["d1", "d2"], languages=("en",))
    await commit_event(service.events.repository, "fired", found, found.last_seen_ms)


async def test_an_editor_who_types_dam_finds_the_event_and_the_articles(browser: Browser) -> None:
    """From the front page by keyboard alone: "/", the word, Enter; the event comes first."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        await store_dam(service, client)
        async with opened(browser, client.make_url("/")) as page:
            await page.keyboard.press("/")
            await page.keyboard.type("dam")
            await page.keyboard.press("Enter")
            await page.wait_for_url("**/search?q=dam*")
            headlines = await page.locator("main .headline").all_inner_texts()
            assert headlines[0] == "Dam above Kareth bursts"
            assert sorted(headlines[1:]) == [
                "Kareth dam bursts after heavy rain",
                "Thousands flee as dams fail",
            ]

            await page.get_by_label("Source").fill("coastline news")
            await page.keyboard.press("Enter")
            await page.wait_for_url("**source=coastline*")
            assert await page.locator("main .headline").all_inner_texts() == ["Thousands flee as dams fail"]

            await page.get_by_role("link", name="Thousands flee as dams fail").first.click()
            await page.wait_for_url("**/search?q=d2*")


async def test_the_box_works_on_every_page_by_keyboard(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """A slash focuses it and types nothing; in a field it is a character; Escape leaves the box."""
    await post_articles(client, 5)
    service.fake_events.stored = events()
    focused = "document.activeElement?.id"
    async with opened(browser, client.make_url("/")) as page:
        for path in PAGES:
            await page.goto(str(client.make_url(path)))
            await page.keyboard.press("/")
            assert await page.evaluate(focused) == "search-box", path
            await expect(page.locator("#search-box")).to_have_value("")
            await page.keyboard.press("/")
            await expect(page.locator("#search-box")).to_have_value("/")
            await page.keyboard.press("Escape")
            assert await page.evaluate(focused) != "search-box", path


async def test_the_box_works_on_error_pages(browser: Browser, client: Client) -> None:
    """An editor who followed a link to an expired event can search at once."""
    page = await browser.new_page()
    await page.goto(str(client.make_url("/events/gone")))
    await page.keyboard.press("/")
    assert await page.evaluate("document.activeElement?.id") == "search-box"
    await page.close()


async def test_what_is_not_found_says_so(browser: Browser) -> None:
    """No article, stop words only, an unknown language; a long query is a text."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        await store_dam(service, client)
        long = "dam " * 60
        for path, text in (
            ("/search?q=volcano", "volcano: not found."),
            ("/search?q=the+of", "too common to be searched"),
            ("/search?q=dam&lang=zz", "unknown language"),
            (f"/search?q={long}", "How this was decided"),
            ("/search?q=dam&cursor=x", "invalid cursor"),
        ):
            async with opened(browser, client.make_url(path)) as page:
                assert text in await page.locator("main").inner_text(), path


async def test_articles_are_shown_a_page_at_a_time(browser: Browser, client: Client) -> None:
    """The link leads to the others."""
    await post_articles(client, 40)
    async with opened(browser, client.make_url("/search?q=(")) as page:
        first = await page.locator("main .headline").all_inner_texts()
        await page.get_by_role("link", name="More articles").click()
        await page.wait_for_url("**cursor=*")
        second = await page.locator("main .headline").all_inner_texts()
        assert (len(first), len(second), len({*first, *second})) == (30, 10, 40)
