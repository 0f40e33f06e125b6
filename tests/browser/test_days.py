"""Days and "since you left" in the browser: its time zone, and what it remembers of the last visit."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, expect

from aggregator.app import open_service
from aggregator.settings import Settings
from aggregator.time_units import HOUR_MS
from tests.browser.pages import opened
from tests.support.factories import commit_event, event
from tests.support.fake_service import serving

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_an_editor_sees_what_happened_since_the_last_visit(browser: Browser) -> None:
    """After a pause of half an hour; a page that is open, or a second visit at once, changes nothing."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        at_ms = service.clock() - HOUR_MS
        times = {"detected_at_ms": at_ms, "last_seen_ms": at_ms, "times": (at_ms,)}
        found = event("quake", "Quake off the coast", ["a"], **times)
        await commit_event(service.events.repository, "fired", found, at_ms)
        async with opened(browser, client.make_url("/"), timezone_id="Asia/Tokyo") as page:
            link = page.get_by_role("link", name="What happened since you left")
            await expect(link).to_be_hidden()
            await page.evaluate(
                """localStorage.setItem("aggregator.visit", JSON.stringify(
                    {last: Date.now() - 2 * 3_600_000, since: null}))"""
            )
            for _ in range(2):
                await page.reload()
                await expect(link).to_be_visible()
            await link.click()
            await page.wait_for_url("**/days?time_zone=Asia%2FTokyo&since=*")
            await expect(page.locator("h1")).to_contain_text("Handover since")
            await expect(page.locator("#list-new")).to_have_text("Detected since 1")
            await page.get_by_role("link", name="Today").click()
            await page.wait_for_url("**/days/*?time_zone=Asia**Tokyo")
            await expect(page.locator("main")).to_contain_text("(Asia/Tokyo)")
            await page.get_by_role("link", name="Quake off the coast").click()
            await page.wait_for_url("**/events/quake")


async def test_a_desk_made_of_a_filter_has_the_time_zone_of_the_reader(browser: Browser) -> None:
    """Its digest and quiet hours are not those of UTC by silence."""
    async with (
        open_service(Settings(store_url="memory")) as service,
        serving(service) as client,
        opened(browser, client.make_url("/?term=quake"), timezone_id="America/Lima") as page,
    ):
        await page.get_by_role("button", name="Save as desk…").click()
        await expect(page.locator("[name=time_zone]")).to_have_value("America/Lima")


async def test_the_day_is_that_of_the_reader(browser: Browser) -> None:
    """Also on the first page that a browser opens; without scripts it is in UTC, and dates need none."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        at_ms = 1_790_000_000_000
        found = event("quake", "Quake", ["a"], first_seen_ms=at_ms, detected_at_ms=at_ms, last_seen_ms=at_ms)
        await commit_event(service.events.repository, "fired", found, at_ms)
        for path in ("/days", "/days/2026-11-20"):
            async with opened(browser, client.make_url(path), timezone_id="Pacific/Kiritimati") as page:
                await expect(page.locator("main")).to_contain_text("(Pacific/Kiritimati)")
                day = await page.evaluate("new Date().toLocaleDateString('sv')")
                await expect(page.locator("#day")).to_have_value(day if path == "/days" else "2026-11-20")
                await page.locator("[rel=prev]").click()
                await page.wait_for_url("**/days/*?time_zone=Pacific%2FKiritimati")
        path = str(client.make_url("/days")) + "?since=2026-09-20T08:00Z"
        async with opened(browser, path, timezone_id="Pacific/Kiritimati") as page:
            await expect(page.locator("#since")).to_have_value("2026-09-20T22:00")
            await page.locator("#since").fill("2026-09-21T03:30")
            await page.locator("#since").press("Enter")
            await page.wait_for_url("**/days?time_zone=Pacific%2FKiritimati&since=2026-09-21T03%3A30")
            await expect(page.locator("h1")).to_contain_text("03:30")
        path = str(client.make_url("/days/2026-11-20"))
        async with opened(browser, path, java_script_enabled=False) as page:
            await expect(page.locator("main")).to_contain_text("(UTC)")
            await page.locator("#day").fill("2026-10-05")
            await page.get_by_role("button", name="Show").click()
            await page.wait_for_url("**/days/2026-10-05")
            await expect(page.locator("main")).to_contain_text("No event had articles on this day.")


async def test_times_of_today_have_their_date_on_the_page_of_another_day(browser: Browser) -> None:
    """An event of both days that was detected today."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        now_ms = service.clock()
        first_ms = now_ms - 24 * HOUR_MS
        found = event(
            "quake", "Quake", ["a", "b"], first_seen_ms=first_ms, detected_at_ms=now_ms, last_seen_ms=now_ms,
            times=(first_ms, now_ms),
        )  # fmt: skip
        await commit_event(service.events.repository, "fired", found, now_ms)
        async with opened(browser, client.make_url("/days"), timezone_id="Etc/GMT") as page:
            detected = page.locator(".facts time").first
            await expect(detected).to_have_text(re.compile(r"^\d\d:\d\d$"))
            await page.locator("[rel=prev]").click()
            await expect(page.locator("#list-later")).to_be_visible()
            await expect(detected).to_have_text(re.compile(r"^\w+ \d+, \d\d:\d\d$"))


async def test_a_storyline_has_the_days_of_the_reader(browser: Browser) -> None:
    """Also on the first page that a browser opens, which is then loaded again, once."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        for id_ in ("quake", "aftershock"):
            found = event(id_, f"The {id_}", ["a"], story_id="quake")
            await commit_event(service.events.repository, "fired", found, found.detected_at_ms)
        async with opened(browser, client.make_url("/stories/quake"), timezone_id="America/Lima") as page:
            await expect(page.locator("#story")).to_contain_text("(America/Lima)")
            await page.goto(str(client.make_url("/events/quake")))
            await expect(page.locator("#developments")).to_contain_text("by day (America/Lima)")
