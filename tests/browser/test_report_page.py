"""The report page: notes and merges by keyboard alone, chart values, pages, export, print view."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from aggregator.settings import Settings
from tests.browser.pages import accessibility_violations, opened, overflow_px
from tests.browser.test_live import make_event, running
from tests.support.factories import EVENT_MS, event
from tests.support.fake_service import START_MS, Client, FakeService
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MINUTE_MS = 60_000
FIRST_BIN_MS = START_MS // (10 * MINUTE_MS) * 10 * MINUTE_MS


@pytest_asyncio.fixture(loop_scope="session")
async def url() -> AsyncIterator[str]:
    """A fresh service in memory with a short detector interval."""
    settings = Settings(
        store_url="memory", detector_interval_seconds=0.2, request_timeout_seconds=HANG_LIMIT_S
    )
    async with running(settings) as (_, address):
        yield address


async def store_articles(client: Client, service: FakeService, count: int) -> None:
    """An event of ``count`` articles of twelve outlets; the last three copy the first one."""
    for n in range(count):
        copied = n >= count - 3
        body = {
            "id": f"a{n}",
            "title": f"Harbour bridge closed, report {n}" if n else "=Bridge closed",
            "text": "The bridge is closed." if copied or not n else f"Report {n} of the closed bridge.",
            "source": f"Outlet {n % 12}",
            "url": f"https://a.example/{n}",
        }
        assert (await client.post("/v1/articles", json=body)).status == 201 or copied
    service.fake_events.stored = [
        event(
            "e1", "Harbour bridge closed after storm", [f"a{n}" for n in range(count)],
            first_seen_ms=START_MS, last_seen_ms=START_MS + 20 * MINUTE_MS,
            timeline=((FIRST_BIN_MS, count - 8), (FIRST_BIN_MS + 20 * MINUTE_MS, 8)),
            times=(FIRST_BIN_MS,) * (count - 8) + (FIRST_BIN_MS + 20 * MINUTE_MS,) * 8,
            sources=tuple(f"Outlet {n}" for n in range(12)),
        ),
        event("e2", "Ferry rescued in storm", detected_at_ms=EVENT_MS + 1),
    ]  # fmt: skip


async def press_until(page: Page, selector: str, key: str = "Tab") -> None:
    """Press a key until an element that matches has the focus."""
    for _ in range(80):
        if await page.evaluate("s => document.activeElement.matches(s)", selector):
            return
        await page.keyboard.press(key)
    raise AssertionError(f"{selector} cannot be reached with {key}")


async def test_a_note_by_keyboard_appears_in_another_browser(browser: Browser, url: str) -> None:
    """Without a mouse; an unfinished note of a colleague survives the update."""
    report = f"{url}/events/{await make_event(url)}"
    async with opened(browser, report) as ann, opened(browser, report) as ben:
        await ben.locator("#live.on").wait_for()
        await ben.locator("#note-text").fill("Not finished")
        await press_until(ann, "#note-text")
        await ann.keyboard.type("Called the port: closed until Monday.")
        await press_until(ann, ".add-note button")
        await ann.keyboard.press("Enter")
        await ann.get_by_role("textbox", name="Your name").wait_for()
        await ann.keyboard.type("Ann")
        await ann.keyboard.press("Enter")

        note = ben.locator(".notes li", has_text="Called the port: closed until Monday.")
        await note.wait_for()
        assert "Ann" in await note.inner_text()
        await expect(ben.locator("#note-text")).to_have_value("Not finished")
        await expect(ann.locator("#note-text")).to_have_value("")

        await press_until(ann, "[data-menu=status-menu]", "Shift+Tab")
        await ann.keyboard.press("Enter")
        await press_until(ann, "[value=on_it]", "ArrowDown")
        await ann.keyboard.press("Enter")
        await ben.locator(".work", has_text="On it: Ann").wait_for()
        await ann.locator(".work", has_text="On it: Ann").wait_for()
        assert await ann.evaluate("document.activeElement.dataset.menu") == "status-menu"
        history = await ben.locator(".audit-trail").inner_text()
        assert "Ann is on it" in history and "Ann added a note" in history
        assert await accessibility_violations(ben) == []


async def test_a_merge_without_a_connection_says_so_and_can_be_repeated(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """The button works again once the service is reached; no event is selected before the reader chooses."""
    await store_articles(client, service, 3)
    context = await browser.new_context()
    page = await context.new_page()
    page.set_default_timeout(HANG_LIMIT_S * 1000)
    await page.goto(str(client.make_url("/events/e1")))
    await page.route("**/v1/events?*", lambda route: route.abort())
    await page.get_by_role("button", name="Merge…").click()
    await page.get_by_text("The other events cannot be read now.").wait_for()
    await page.unroute("**/v1/events?*")
    await page.get_by_role("button", name="Merge…").click()
    dialog = page.get_by_role("dialog", name="Merge into which event?")
    await dialog.wait_for()
    choice, proceed = dialog.get_by_role("radio").first, dialog.get_by_role("button", name="Continue")
    assert await dialog.get_by_role("radio", checked=True).count() == 0 and await proceed.is_disabled()
    await choice.focus()
    await page.keyboard.press("Space")
    assert await choice.is_checked() and await proceed.is_enabled()
    await context.close()


async def test_bars_are_read_with_the_arrow_keys(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Count, total and sources; the table has the same, and a pointer shows it too."""
    await store_articles(client, service, 30)
    async with opened(browser, client.make_url("/events/e1")) as page:
        value = page.locator("[data-spread-value]")
        await press_until(page, "[data-spread]")
        await page.keyboard.press("ArrowRight")
        first = await value.inner_text()
        await page.keyboard.press("ArrowRight")
        second = await value.inner_text()
        assert "22 new, 22 in total. Outlet 0, Outlet 1" in first and "and 4 more" in first
        assert "8 new, 30 in total." in second

        await page.keyboard.press("Escape")
        await page.locator(".hit").first.hover()
        await expect(value).to_have_text(first, use_inner_text=True)
        await page.get_by_text("The same as a table").click()
        await expect(page.locator("[data-spread-rows] tr")).to_have_count(2)


async def test_articles_have_pages_and_orders(browser: Browser, client: Client, service: FakeService) -> None:
    """Links that work without scripts; copies are folded under their original."""
    await store_articles(client, service, 120)
    options: dict[str, Any] = {"java_script_enabled": False}
    async with opened(browser, client.make_url("/events/e1"), **options) as page:
        await expect(page.locator(".article-rows > .item")).to_have_count(50)
        await page.get_by_role("link", name="Next").first.click()
        await page.get_by_text("Page 2 of 3").first.wait_for()
        await page.get_by_role("link", name="Next").first.click()
        await expect(page.locator(".article-rows > .item")).to_have_count(17)
        folded = page.locator("summary", has_text="and 3 copies in Outlet 9, Outlet 10, Outlet 11")
        await folded.click()
        await expect(page.locator(".duplicates li")).to_have_count(3)
        await page.get_by_role("link", name="Oldest first").click()
        await expect(page.locator(".article-rows > .item").first).to_have_attribute("data-item", "a0")
        await page.get_by_role("link", name="By outlet").click()
        await expect(page.locator("section.outlet h3").first).to_have_text("Outlet 0", use_inner_text=True)
        color, text = await page.locator(".item .headline a").first.evaluate(
            "a => [getComputedStyle(a).color, getComputedStyle(document.body).color]"
        )
        assert color != text


async def test_the_selection_counts_folded_copies(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """A copy is selected with its original, and is said to be one."""
    await store_articles(client, service, 5)
    async with opened(browser, client.make_url("/events/e1?view=oldest")) as page:
        selected = page.locator("#selected-count")
        await page.locator("[data-select]").first.check()
        await expect(selected).to_have_text("4 selected, 3 of them folded copies")
        await page.locator("[data-select]").last.check()
        await expect(selected).to_have_text("5 selected, 3 of them folded copies")
        await page.locator("[data-select]").first.uncheck()
        await expect(selected).to_have_text("1 selected")


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_bar_of_the_selection_covers_no_row_with_the_focus(
    browser: Browser, client: Client, service: FakeService, width: int
) -> None:
    """When it appears, and when the keyboard moves on to rows below it."""
    await store_articles(client, service, 40)
    viewport = {"width": width, "height": 700}
    async with opened(browser, client.make_url("/events/e1"), viewport=viewport) as page:
        rows = page.locator(".article-rows > .item")
        await rows.nth(5).evaluate("row => row.scrollIntoView({ block: 'end', behavior: 'instant' })")
        await rows.nth(5).locator("a").first.evaluate("link => link.focus({ preventScroll: true })")
        for key in "ejj":
            await page.keyboard.press(key)
            row = await page.evaluate(
                "document.activeElement.closest('.item').getBoundingClientRect().bottom"
            )
            bar = await page.locator("#selection").bounding_box()
            assert bar and row <= bar["y"], (key, row, bar)


async def test_articles_can_be_downloaded(
    browser: Browser, client: Client, service: FakeService, tmp_path: Path
) -> None:
    """All of them, as CSV without formulas and as JSON."""
    await store_articles(client, service, 60)
    async with opened(browser, client.make_url("/events/e1")) as page:
        async with page.expect_download() as started:
            await page.get_by_role("link", name="CSV").click()
        await (await started.value).save_as(tmp_path / "items.csv")
        async with page.expect_download() as started:
            await page.get_by_role("link", name="JSON", exact=True).click()
        assert (await started.value).suggested_filename == "e1.json"

    text = (tmp_path / "items.csv").read_bytes().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == 60
    assert rows[0]["title"] == "'=Bridge closed"


async def test_a_headline_is_chosen_and_undone(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """From the alternatives; the automatic one can be restored."""
    await store_articles(client, service, 5)
    other = {"id": "b", "title": "Commuters wait for ferries", "text": "They wait.", "source": "Quay"}
    await client.post("/v1/articles", json=other)
    service.fake_events.stored[0] = replace(
        service.fake_events.stored[0], items=("a1", "b"), cosines=(1.0, 0.5)
    )
    async with opened(browser, client.make_url("/events/e1")) as page:
        await page.evaluate("localStorage.setItem('aggregator.actor', 'Ann')")
        await page.locator(".alternative").get_by_role("button", name="Use as headline").first.click()
        await page.locator("h1", has_text="Commuters wait for ferries").wait_for()
        await page.get_by_role("button", name="Undo", exact=True).click()
        await page.locator("h1", has_text="Harbour bridge closed after storm").wait_for()
        await page.locator(".alternative").get_by_role("button", name="Use as headline").first.click()
        await page.locator("h1", has_text="Commuters wait for ferries").wait_for()
        await page.get_by_role("button", name="Use automatic headline").click()
        await page.locator("h1", has_text="Harbour bridge closed after storm").wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
async def test_every_view_of_the_report_is_accessible(
    browser: Browser, client: Client, service: FakeService, width: int, scheme: str
) -> None:
    """No severe finding of axe and no horizontal scrolling; with notes, a status and open details."""
    await store_articles(client, service, 60)
    for action in (
        {"action": "note", "text": "Ein sehrlangesWort" * 20},
        {"action": "set_work_status", "work_status": "published"},
    ):
        await client.post("/v1/events/e1/actions", json={"actor": "Ann", **action})
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    async with opened(browser, client.make_url("/"), **options) as page:
        for view in ("", "?view=outlets", "?print=true"):
            await page.goto(str(client.make_url("/events/e1")) + view)
            await page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
            assert await accessibility_violations(page, targets=True) == [], view
            assert await overflow_px(page) <= 0, view


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
async def test_an_arabic_report_runs_from_right_to_left(
    browser: Browser, client: Client, service: FakeService, width: int, scheme: str
) -> None:
    """Headlines and names are isolated from the English around them; no severe finding of axe in any view."""
    title = "إغلاق جسر الميناء بعد العاصفة 45 يوما"
    for n in range(6):
        body = {"id": f"a{n}", "title": f"{title} {n}", "text": f"{title} " * n, "lang": "ar"}
        await client.post("/v1/articles", json={**body, "source": f"جريدة الميناء {n}"})
    reason = "16 items from 6 sources in 1 h about الميناء, جسر, where 0.4 are usual in 4 h; more than 15 ..."
    service.fake_events.stored = [
        event(
            "e1", title, [f"a{n}" for n in range(6)], terms=("الميناء", "جسر", "العاصفة"), reason=reason,
            sources=tuple(f"جريدة الميناء {n}" for n in range(6)), story_id="e0",
        ),
        event("e0", "عاصفة في الميناء", [], detected_at_ms=EVENT_MS - 90_000_000, status="closed"),
    ]  # fmt: skip
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    async with opened(browser, client.make_url("/"), **options) as page:
        report = "/events/e1"
        views = (report, f"{report}?view=outlets", f"{report}?print=true", f"{report}/provenance")
        for path in (*views, "/stories/e0"):
            await page.goto(str(client.make_url(path)))
            await page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
            assert await accessibility_violations(page) == [], path
            assert await overflow_px(page) <= 0, path
            for headline in (page.locator("h1"), page.locator("[lang=ar]").last):
                await expect(headline).to_have_css("direction", "rtl")
                await expect(headline).to_have_css("letter-spacing", "normal")
        await page.goto(str(client.make_url(report)))
        await expect(page.locator("p bdi", has_text="جسر")).to_have_text(["جسر"])  # of the terms
        outlet, at = page.locator(".first-source bdi"), page.locator(".first-source time")
        (left, right) = [box for box in (await outlet.bounding_box(), await at.bounding_box()) if box]
        assert left["x"] + left["width"] + 4 < right["x"] or left["y"] + left["height"] <= right["y"] + 4


async def test_paper_has_no_controls(browser: Browser, client: Client, service: FakeService) -> None:
    """The print view lists all articles; buttons, forms and navigation are not printed."""
    await store_articles(client, service, 120)
    async with opened(browser, client.make_url("/events/e1?print=true")) as page:
        await expect(page.locator(".article-rows > .item")).to_have_count(117)
        await page.emulate_media(media="print")
        for selector in ("header.bar", ".toolbar", ".add-note", ".views", ".item-tools a", ".export"):
            await expect(page.locator(selector).first).not_to_be_visible()
        await expect(page.locator("h1")).to_be_visible()
        await expect(page.locator(".article-rows .headline").last).to_be_visible()
        assert await page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


async def test_times_on_paper_have_their_dates(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """In the print view, and while a page is printed; "5 min. ago" is true on a screen only."""
    await store_articles(client, service, 3)
    year = str(datetime.fromtimestamp(START_MS / 1000, UTC).year)
    first = ".article-rows time >> nth=0"
    async with opened(browser, client.make_url("/events/e1?print=true"), timezone_id="UTC") as page:
        for selector in (".facts time >> nth=-1", first):
            await expect(page.locator(selector)).to_contain_text(year)
        await page.goto(str(client.make_url("/events/e1")))
        await expect(page.locator(first)).not_to_contain_text(year)
        await page.evaluate("dispatchEvent(new Event('beforeprint'))")
        await expect(page.locator(first)).to_contain_text(year)
        await page.evaluate("dispatchEvent(new Event('afterprint'))")
        await expect(page.locator(first)).not_to_contain_text(year)


async def test_the_columns_of_the_spread_table_are_apart(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Headings of one line and space between figures and sources, also on a phone."""
    await store_articles(client, service, 20)
    async with opened(browser, client.make_url("/events/e1"), viewport={"width": 390, "height": 800}) as page:
        await page.get_by_text("The same as a table").click()
        total, sources = page.locator(".spread-table th").nth(2), page.locator(".spread-table th").nth(3)
        await expect(total).to_be_visible()
        assert await total.evaluate("cell => cell.offsetHeight < 40")
        assert await total.evaluate("cell => parseFloat(getComputedStyle(cell).paddingInlineEnd) >= 8")
        assert await sources.evaluate("cell => cell.offsetWidth >= 144")
        assert await overflow_px(page) <= 0


async def test_a_phone_has_whole_figures_and_a_way_to_the_articles(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Four figures of each kind, the others behind a disclosure: no box that scrolls cuts a row."""
    for n in range(24):
        body = {"id": f"a{n}", "source": f"Outlet {n % 9}", "lang": "en", "text": f"Report {n} of the ferry."}
        title = f"Ferry sinks off Brackwater: {n // 2 + 3} dead, {n // 2 + 30} injured"
        await client.post("/v1/articles", json={**body, "title": title})
    service.fake_events.stored = [event("e1", "Ferry sinks off Brackwater", [f"a{n}" for n in range(24)])]
    async with opened(browser, client.make_url("/events/e1"), viewport={"width": 390, "height": 844}) as page:
        await expect(page.locator(".figures tbody tr:visible")).to_have_count(8)
        await page.get_by_text("Earlier figures").click()
        await expect(page.locator(".figures tbody tr:visible")).to_have_count(24)
        link = page.get_by_role("link", name="All 24 articles")
        box = await link.bounding_box()
        assert box and box["y"] < 844
        await link.click()
        await expect(page.get_by_role("heading", name="Articles")).to_be_in_viewport()
        assert await overflow_px(page) <= 0


async def test_a_phone_has_all_actions_in_one_line(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Within reach at each position of the page, also with that of a storyline."""
    await store_articles(client, service, 20)
    report = replace(service.fake_events.stored[0], story_id="e0")
    service.fake_events.stored = [event("e0", "Before it", story_id="e0"), report]
    async with opened(browser, client.make_url("/events/e1"), viewport={"width": 390, "height": 664}) as page:
        buttons = page.locator(".report .toolbar button")
        await expect(buttons).to_have_count(4)
        for y in (0, 900, 2000):
            await page.evaluate("y => scrollTo(0, y)", y)
            boxes = [box for button in await buttons.all() if (box := await button.bounding_box())]
            assert len({box["y"] for box in boxes}) == 1 and 0 <= boxes[0]["y"] <= 664 - boxes[0]["height"]
            assert boxes[-1]["x"] + boxes[-1]["width"] <= 390


async def test_a_report_shows_what_is_new_first(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """The newest headlines of three outlets and the first source, also on the first screen of a phone."""
    await store_articles(client, service, 20)
    first = (START_MS, "a0", "Outlet 0")
    service.fake_events.stored = [replace(service.fake_events.stored[0], first=first)]
    url = client.make_url("/events/e1")
    async with opened(browser, url, viewport={"width": 390, "height": 844}) as page:
        brief = page.locator(".brief")
        box = await brief.bounding_box()
        outlets = await brief.locator("li .origin > bdi").all_inner_texts()
        assert box is not None and box["y"] + box["height"] < 844
        assert len(outlets) == len(set(outlets)) == 3
        await expect(brief).to_contain_text("First of those in the event: Outlet 0")
        assert await accessibility_violations(page, ".brief") == []
        assert await overflow_px(page) <= 0
    async with opened(browser, url, viewport={"width": 1280, "height": 900}) as page:
        columns = [await li.bounding_box() for li in await page.locator(".brief li").all()]
        assert len({box["y"] for box in columns if box}) == 1  # next to each other
        await expect(page.locator(".brief")).to_contain_text("First of those in the event: Outlet 0")
