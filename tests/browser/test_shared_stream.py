"""All pages of a browser share one event stream, since HTTP/1.1 leaves a browser six connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus

import aiohttp
import pytest
from playwright.async_api import Browser, BrowserContext, Page, Route, expect

from tests.browser.test_live import make_event, post, report, url
from tests.support.hang_limit import HANG_LIMIT_S

__all__ = ["url"]  # the fixture
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TABS = 8
MAX_STREAMS = 3  # of stream_worker.js


@asynccontextmanager
async def tabs(browser: Browser, addresses: Iterable[str]) -> AsyncIterator[list[Page]]:
    """A page per address, in one browser."""
    context: BrowserContext = await browser.new_context()
    context.set_default_timeout(HANG_LIMIT_S * 1000)
    pages = []
    for address in addresses:
        pages.append(await context.new_page())
        await pages[-1].goto(address)
    yield pages
    await context.close()


async def wait_for_streams(url: str, expected: int) -> None:
    """Wait until the service writes to this many streams; it notices late that one was closed."""
    async with asyncio.timeout(HANG_LIMIT_S), aiohttp.ClientSession(url) as session:
        while True:
            async with session.get("/metrics") as response:
                lines = (await response.text()).splitlines()
            if f"aggregator_event_stream_clients {expected:.1f}" in lines:
                return
            await asyncio.sleep(0.05)


async def test_eight_tabs_share_one_stream(browser: Browser, url: str) -> None:
    """The eighth tab loads, and all are updated."""
    paths = ("/", "/search", "/health", "/sources", "/search", "/desks", "/webhooks", "/")
    assert len(paths) == TABS
    async with tabs(browser, (url + path for path in paths)) as pages:
        for page in pages:
            await page.locator("body[data-stream-state=on]").wait_for()
        await wait_for_streams(url, 1)

        await make_event(url)
        for page in pages[1:-1]:
            await page.locator("#new-events", has_text="1 new event: Harbour bridge").wait_for()
        for page in (pages[0], pages[-1]):
            await page.locator("#events-new .event").wait_for()
        await pages[0].close()
        await make_event(url, "volcano ash airport flights")
        await pages[1].locator("#new-events", has_text="2 new events").wait_for()
        await wait_for_streams(url, 1)


async def test_a_late_response_hides_no_new_event(browser: Browser, url: str) -> None:
    """A front page that was fetched before an event fired and arrives after it: the event stays announced."""
    async with tabs(browser, (url, f"{url}/search")) as (front, lookup):
        for page in (front, lookup):
            await page.locator("body[data-stream-state=on]").wait_for()
        fetched, released = asyncio.Event(), asyncio.Event()

        async def hold(route: Route) -> None:
            response = await route.fetch()
            if response.status == HTTPStatus.OK and not fetched.is_set():  # the page has changed
                fetched.set()
                await released.wait()
            await route.fulfill(response=response)

        await front.route(f"{url}/", hold)
        await post(url, report(0, "volcano ash airport flights"))
        await fetched.wait()
        await make_event(url)
        button = lookup.locator("#new-events", has_text="1 new event: Harbour bridge")
        await button.wait_for()

        await front.evaluate(
            """document.addEventListener("refreshed", () => localStorage.setItem("test", "1"),
            { once: true })"""
        )
        await lookup.evaluate(
            """() => { window.merged = new Promise((resolve) => addEventListener("storage",
            ({ key }) => key === "test" && resolve())); }"""
        )
        released.set()
        await lookup.evaluate("window.merged")
        await expect(button).to_be_visible()
        assert (await lookup.title()).startswith("(1) ")
        await front.locator("#events-new .event").wait_for()


async def test_a_page_that_learns_of_an_event_last_announces_it(browser: Browser, url: str) -> None:
    """Another page has stored the event as new before this page receives it."""
    async with tabs(browser, (url, f"{url}/search")) as (front, lookup):
        for page in (front, lookup):
            await page.locator("body[data-stream-state=on]").wait_for()
        await lookup.evaluate(
            """() => {
              const event = { id: "late", title: "Harbour bridge", detected_at: "2030-01-01T00:00:00Z" };
              const stored = { id: event.id, title: event.title, at: Date.parse(event.detected_at) };
              localStorage.setItem("aggregator.unseen", JSON.stringify([stored]));
              document.dispatchEvent(new CustomEvent("event-change", { detail: { kind: "fired", event } }));
            }"""
        )
        await lookup.locator("#new-events", has_text="1 new event: Harbour bridge").wait_for()


async def test_eight_filters_leave_connections_for_requests(browser: Browser, url: str) -> None:
    """The first filters have streams, further ones refresh at intervals until one of the first is closed."""
    async with tabs(browser, (f"{url}/?min_size={n}" for n in range(1, TABS + 1))) as pages:
        for page in pages[:MAX_STREAMS]:
            await page.locator("#live.on").wait_for()
        for page in pages[MAX_STREAMS:]:
            await page.locator("body[data-stream-state=waiting]").wait_for()
        await make_event(url)
        for page in pages:
            await page.bring_to_front()
            await page.locator("#events-new .event").wait_for()
        await wait_for_streams(url, MAX_STREAMS)

        await pages[0].close()
        await pages[MAX_STREAMS].locator("#live.on").wait_for()


async def test_a_browser_without_shared_workers_has_a_stream_per_page(browser: Browser, url: str) -> None:
    """As on Android phones."""
    context = await browser.new_context()
    await context.add_init_script("delete window.SharedWorker")
    pages = [await context.new_page() for _ in range(2)]
    for page in pages:
        await page.goto(url)
        await page.locator("#live.on").wait_for(timeout=HANG_LIMIT_S * 1000)
    await wait_for_streams(url, 2)
    await context.close()
