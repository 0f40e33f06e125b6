"""The pages over the real service: events appear by themselves, editors see each other, restarts lose nothing."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from aggregator.app import Service, open_service
from aggregator.http.app import make_app
from aggregator.http.server import make_runner
from aggregator.settings import Settings
from tests.browser.pages import barriers, opened, watched
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
WITHIN_MS = 15_000  # of a busy machine


def report(n: int, story: str = "harbour bridge closed storm") -> dict[str, Any]:
    """One outlet's own words on one story."""
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
    """The service in this process with its detector, and its address."""
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
    """A fresh service in memory that ticks often and keeps texts."""
    async with running(Settings(store_url="memory", store_texts=True, detector_interval_seconds=0.2)) as (
        _,
        address,
    ):
        yield address


async def post(url: str, *articles: dict[str, Any]) -> None:
    """Articles one by one, as a crawler does."""
    async with aiohttp.ClientSession(url) as session:
        for article in articles:
            async with session.post("/v1/articles", json=article) as response:
                assert response.status in (200, 201), await response.text()


async def an_event(url: str, story: str = "harbour bridge closed storm") -> str:
    """An event of 16 sources; its id."""
    await post(url, *(report(n, story) for n in range(16)))
    deadline_s = time.monotonic() + 10
    async with aiohttp.ClientSession(url) as session:
        while time.monotonic() < deadline_s:
            async with session.get("/v1/events", params={"term": story.split()[0]}) as response:
                events = (await response.json())["events"]
            if events:
                return str(events[0]["id"])
    raise AssertionError("no event fired")


async def test_an_event_appears_within_three_seconds_of_its_16th_item(browser, url):
    """A stream without history, 16 sources: nothing after 15, then a row by itself, marked as new."""
    async with opened(browser, url) as page:
        await page.locator("#live.on").wait_for()
        await post(url, *(report(n) for n in range(15)))
        await page.locator("#verdicts li", has_text="paper14").wait_for()
        assert await page.locator("#events .event").count() == 0

        await post(url, report(15))
        await page.locator("#events .event").wait_for(timeout=WITHIN_MS)
        row = page.locator("#events .event")
        assert "16" in await row.locator(".figures").inner_text()
        assert await row.locator(".fresh").is_visible()


async def test_two_editors_see_what_the_other_does(browser, url):
    """Asked for a name once; acknowledge and mute show in the other browser by themselves, with who and when."""
    event = await an_event(url)
    async with opened(browser, url) as ann, opened(browser, f"{url}/events/{event}") as ben:
        await ben.locator("#live.on").wait_for()
        await ann.locator("#events [data-action=acknowledge]").click()
        await ann.get_by_role("textbox", name="Your name").fill("Ann")
        await ann.get_by_role("textbox", name="Your name").press("Enter")
        await ann.get_by_text("Acknowledged.").wait_for()
        await ben.get_by_text("acknowledged by Ann").wait_for()

        await ben.get_by_role("button", name="Mute story").click()
        assert await barriers(ben) == []
        await ben.get_by_role("textbox", name="Your name").fill("Ben <b>")
        await ben.get_by_role("textbox", name="Your name").press("Enter")
        await ann.locator("#events-muted .event").wait_for(state="attached")
        assert await ann.locator("#events .event").count() == 0
        audit = ben.locator(".audit li")
        await audit.nth(1).wait_for()
        assert "Ben <b> muted it (story)" in await audit.nth(0).inner_text()

        await ben.get_by_role("button", name="Unmute").click()  # not asked for a name again
        await ann.locator("#events .event").wait_for()


async def test_editors_take_items_out_and_merge_events(browser, url):
    """An item leaves the report; of two events one goes on, the other says where."""
    first = await an_event(url)
    second = await an_event(url, "volcano ash airport flights")
    async with opened(browser, f"{url}/events/{second}") as page:
        await page.evaluate("localStorage.setItem('aggregator.actor', 'Ann')")
        item = page.locator(".item").first
        gone = await item.get_attribute("data-item")
        await item.get_by_role("button", name="Take out").click()
        await page.locator(f".item[data-item='{gone}']").wait_for(state="detached")

        await page.get_by_role("button", name="Merge…").click()
        await page.get_by_role("button", name="Merge", exact=True).click()
        await page.get_by_text("This event was merged").wait_for()
        await page.get_by_role("link", name="the event that took it over").click()
        await page.wait_for_url(f"**/events/{first}")
        assert "31" in await page.locator(".tiles").inner_text()


async def test_a_refused_action_says_why(browser, url):
    """The answer of the service is shown, nothing is pretended."""
    event = await an_event(url)
    made = await browser.new_context()
    page = await made.new_page()
    await page.goto(f"{url}/events/{event}")
    await page.evaluate("localStorage.setItem('aggregator.actor', 'Ann')")
    await page.evaluate("document.querySelector('[data-action=acknowledge]').dataset.event = 'unknown'")
    await page.get_by_role("button", name="Acknowledge").click()
    await page.get_by_text("Not done: id: there is no event").wait_for()
    await made.close()


async def test_a_restart_loses_nothing(browser, valkey_url, free_port):
    """An event that fires between two lives of the server is on the page as soon as it is back."""
    settings = {"store_url": valkey_url, "port": free_port}
    made = await browser.new_context()
    page = await made.new_page()
    async with serving(**settings) as url:
        await page.goto(url)
        await page.locator("#live.on").wait_for()
        await post(url, *(report(n) for n in range(3)))
        await page.locator("#verdicts li", has_text="paper2").wait_for()
        stopping_s = time.monotonic()
    assert time.monotonic() - stopping_s < 8  # an open stream does not hold it up
    await page.locator("#live:not(.on)").wait_for()
    async with running(Settings(store_url=valkey_url, detector_interval_seconds=0.2)) as (_, elsewhere):
        await an_event(elsewhere)
    async with serving(**settings):
        await page.locator("#events .event").wait_for(timeout=WITHIN_MS)
        await page.locator("#live.on").wait_for()
        assert "16" in await page.locator("#events .event .figures").inner_text()
        await made.close()


async def test_looking_up_and_comparing(browser, url):
    """A pasted text, its verdict, its original beside it with the shared wording marked."""
    text = "The harbour bridge was closed on Friday after gusts of 140 km/h damaged two of its cables. " * 3
    tail = "Ferries carry passengers meanwhile, and the night train ends at the northern pier until further notice."
    await post(
        url, {"id": "original", "title": "Bridge closed", "text": text + tail, "source": "one.example"}
    )
    async with opened(browser, f"{url}/lookup") as page:
        pasted = (text + tail).replace("140", "180") + " More to follow."
        await page.get_by_label("An article’s text, address or id").fill(pasted)
        await page.get_by_role("button", name="Look up").click()
        assert "duplicate" in (await page.locator("h2 .verdict").inner_text()).lower()
        await page.get_by_role("button", name="Compare with Bridge closed").click()
        await page.locator(".sides mark").first.wait_for()

        assert await page.locator(".side").count() == 2
        figures = await page.locator(".side .figure").all_inner_texts()
        assert {"140", "180"} <= set(figures)
        assert await barriers(page) == []
        # Joined, what is shown is the text: nothing is lost or doubled by the marks.
        assert (await page.locator(".side .text").nth(0).text_content()).strip() == pasted
        await page.goto(f"{url}/lookup?q=original")
        assert await page.locator(".bits i").count() == 64


async def test_a_store_that_is_away_is_said_and_comes_back(browser, own_server):
    """The list keeps what it shows, says why it is old, and health names the reason."""
    async with running(Settings(store_url=own_server.url, detector_interval_seconds=0.2)) as (_, url):
        await post(url, report(1))
        made = await browser.new_context()
        page, other = await made.new_page(), await made.new_page()
        problems = watched(other, "127.0.0.1")
        await page.goto(url)
        own_server.stop()
        await page.get_by_text("The store is away; this page shows").wait_for(timeout=20_000)
        assert await page.locator("#verdicts li").count() == 1
        await other.goto(f"{url}/health")
        assert await other.get_by_text("The store is away.").is_visible()
        assert problems == []
        await other.goto(url)
        assert await other.get_by_role("heading", name="The store is unavailable").is_visible()

        own_server.start()
        await other.locator("#verdicts li").wait_for(timeout=20_000)
        await page.locator("#link-state").wait_for(state="hidden", timeout=20_000)
        await made.close()
