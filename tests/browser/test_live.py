"""The pages over the real service: live events, editor actions, restarts, look-up and comparison."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, expect

from aggregator.app import Service, open_service
from aggregator.http.server import make_app, make_runner
from aggregator.settings import Settings
from aggregator.store.embedded import EmbeddedServer
from tests.browser.pages import accessibility_violations, opened, record_problems
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WORDS = [
    "cables",
    "lorries",
    "ferries",
    "tram",
    "council",
    "repair",
    "engineers",
    "gusts",
    "traders",
    "pier",
    "detour",
    "inspectors",
    "toll",
    "pylon",
]


def report(n: int, story: str = "harbour bridge closed storm") -> dict[str, Any]:
    """An article about a story in one outlet's own words."""
    words = f"{story} {WORDS[n % len(WORDS)]} {WORDS[(3 * n + 1) % len(WORDS)]}"
    title = f"{words} paper{n}".capitalize()
    return {
        "id": f"{story[:4]}{n}",
        "title": title,
        "text": f"{title}. {words} again.",
        "source": f"paper{n}.example",
    }


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[tuple[Service, str]]:
    """The service in this process with its detector, and its URL."""
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(open_service(settings))
        runner = make_runner(make_app(service))
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        service.background.scheduler.start()
        stack.push_async_callback(service.background.scheduler.stop)
        yield service, f"http://127.0.0.1:{runner.addresses[0][1]}"


@pytest_asyncio.fixture(loop_scope="session")
async def url() -> AsyncIterator[str]:
    """A fresh service in memory with a short detector interval and stored texts."""
    settings = Settings(
        store_url="memory",
        store_texts=True,
        detector_interval_seconds=0.2,
        request_timeout_seconds=HANG_LIMIT_S,
    )
    async with running(settings) as (_, address):
        yield address


async def post(url: str, *articles: dict[str, Any]) -> None:
    """Submit articles one at a time, as a crawler does."""
    async with aiohttp.ClientSession(url) as session:
        for article in articles:
            async with session.post("/v1/articles", json=article) as response:
                assert response.status in (200, 201), await response.text()


async def make_event(url: str, story: str = "harbour bridge closed storm") -> str:
    """Make an event of 16 sources and return its id."""
    await post(url, *(report(n, story) for n in range(16)))
    deadline_s = time.monotonic() + HANG_LIMIT_S
    async with aiohttp.ClientSession(url) as session:
        while time.monotonic() < deadline_s:
            async with session.get("/v1/events", params={"term": story.split(maxsplit=1)[0]}) as response:
                events = (await response.json())["events"]
            if events:
                return str(events[0]["id"])
    raise AssertionError("no event fired")


async def test_an_event_appears_with_its_16th_item(browser: Browser, url: str) -> None:
    """Without history and with 16 sources: nothing after 15 items, then a row that is marked as new."""
    async with opened(browser, url) as page:
        await page.locator("#live.on").wait_for()
        await post(url, *(report(n) for n in range(15)))
        await page.locator("#verdicts li", has_text="paper14").wait_for()
        await expect(page.locator(".event")).to_have_count(0)

        await post(url, report(15))
        row = page.locator("#events-new .event")  # the section "New since you looked"
        await row.wait_for()
        assert "16" in await row.locator(".counts").inner_text()
        await expect(page.locator("#new-title")).to_be_visible()


async def test_two_editors_see_each_others_actions(browser: Browser, url: str) -> None:
    """Each enters a name once; actions appear in the other browser, with name and time."""
    event = await make_event(url)
    async with opened(browser, url) as ann, opened(browser, f"{url}/events/{event}") as ben:
        await ben.locator("#live.on").wait_for()
        await ann.locator("#events [data-menu=status-menu]").click()
        await ann.get_by_role("button", name="Seen").click()
        await ann.get_by_role("textbox", name="Your name").fill("Ann")
        await ann.get_by_role("textbox", name="Your name").press("Enter")
        await ann.get_by_text("Marked as seen for everyone; it is under Handled now.").wait_for()
        await ben.locator(".facts", has_text="Seen by Ann").wait_for()

        await ben.get_by_role("button", name="Not news…").click()
        assert await accessibility_violations(ben) == []
        await ben.get_by_role("button", name="Mute story").click()
        await ben.get_by_role("textbox", name="Your name").fill("Ben <b>")
        await ben.get_by_role("textbox", name="Your name").press("Enter")
        await ann.locator("#events-handled .event").wait_for(state="attached")
        await ann.locator("#events-handled").get_by_text("Muted").wait_for()
        await expect(ann.locator("#events .event")).to_have_count(0)
        audit = ben.locator(".audit-trail li")
        await audit.nth(1).wait_for()
        assert "Ben <b> muted the story" in await audit.nth(0).inner_text()

        await ben.get_by_role("button", name="News after all").click()  # without asking for the name again
        await ann.locator("#events-handled .state.muted").wait_for(state="detached")


async def test_a_refused_action_shows_the_reason(browser: Browser, url: str) -> None:
    """The error of the service is shown."""
    event = await make_event(url)
    context = await browser.new_context()
    context.set_default_timeout(HANG_LIMIT_S * 1000)
    page = await context.new_page()
    await page.goto(f"{url}/events/{event}")
    await page.evaluate("localStorage.setItem('aggregator.actor', 'Ann')")
    await page.evaluate("document.querySelector('[data-menu=status-menu]').dataset.event = 'unknown'")
    await page.keyboard.press("a")
    await page.get_by_text("Not saved: id: there is no event").wait_for()
    await context.close()


async def test_a_restart_loses_nothing(browser: Browser, valkey_url: str, free_port: int) -> None:
    """An event that fires while the server restarts is shown as soon as it is back."""
    settings: dict[str, Any] = {"store_url": valkey_url, "port": free_port}
    context = await browser.new_context()
    context.set_default_timeout(HANG_LIMIT_S * 1000)
    page = await context.new_page()
    async with serving(**settings) as url:
        await page.goto(url)
        await page.locator("#live.on").wait_for()
        await post(url, *(report(n) for n in range(3)))
        await page.locator("#verdicts li", has_text="paper2").wait_for()
    await page.locator("#live:not(.on)").wait_for()
    async with running(
        Settings(store_url=valkey_url, detector_interval_seconds=0.2, request_timeout_seconds=HANG_LIMIT_S)
    ) as (_, other_url):
        await make_event(other_url)
    async with serving(**settings):
        await page.locator("#events-new .event").wait_for()
        await page.locator("#live.on").wait_for()
        assert "16" in await page.locator("#events-new .event .counts").inner_text()
        await context.close()


async def test_look_up_and_comparison(browser: Browser, url: str) -> None:
    """A pasted text gets its verdict, and is compared with its original, with shared wording marked."""
    text = "The harbour bridge was closed on Friday after gusts of 140 km/h damaged two of its cables. " * 3
    tail = (
        "Ferries carry passengers meanwhile, and the night train ends at the northern pier until further "
        "notice."
    )
    await post(
        url, {"id": "original", "title": "Bridge closed", "text": text + tail, "source": "one.example"}
    )
    async with opened(browser, f"{url}/search") as page:
        pasted = (text + tail).replace("140", "180") + " More to follow."
        await page.locator("#search-box").fill(pasted)
        await page.get_by_role("button", name="Search", exact=True).click()
        assert "duplicate" in (await page.locator("h2 .verdict").inner_text()).lower()
        await page.get_by_role("button", name="Compare with Bridge closed").click()
        await page.locator(".sides mark").first.wait_for()

        await expect(page.locator(".side")).to_have_count(2)
        figures = await page.locator(".side .figure").all_inner_texts()
        assert {"140", "180"} <= set(figures)
        assert await accessibility_violations(page) == []
        # The marks neither lose nor repeat any text.
        assert (await page.locator(".side .text").nth(0).text_content() or "").strip() == pasted
        await page.goto(f"{url}/search?q=original")
        await expect(page.locator(".bits i")).to_have_count(64)


async def test_an_unavailable_store_is_reported(browser: Browser, own_server: EmbeddedServer) -> None:
    """The list keeps its last state with the reason, and the health page reports the problem."""
    async with running(
        Settings(
            store_url=own_server.url, detector_interval_seconds=0.2, request_timeout_seconds=HANG_LIMIT_S
        )
    ) as (_, url):
        await post(url, report(1))
        context = await browser.new_context()
        context.set_default_timeout(HANG_LIMIT_S * 1000)
        page, other = await context.new_page(), await context.new_page()
        problems = record_problems(other, "127.0.0.1")
        await page.goto(url)
        own_server.stop()
        await page.get_by_text("The store is unavailable; this page shows").wait_for()
        await expect(page.locator("#verdicts li")).to_have_count(1)
        await other.goto(f"{url}/health")
        await expect(other.get_by_text("The store is unavailable.")).to_be_visible()
        # Chromium itself reports that the count of new events, which every page fetches, was refused.
        assert [problem for problem in problems if "503 (Service Unavailable)" not in problem] == []
        await other.goto(url)
        await expect(other.get_by_role("heading", name="The store is unavailable")).to_be_visible()

        own_server.start()
        await other.locator("#verdicts li").wait_for()
        await page.locator("#connection-state").wait_for(state="hidden")
        await context.close()
