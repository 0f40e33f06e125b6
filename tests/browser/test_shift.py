"""A whole shift by keyboard, the way back from every action, and two editors at once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from aggregator.settings import Settings
from tests.browser.pages import accessibility_violations, opened, overflow_px
from tests.browser.test_live import make_event, running
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

VOLCANO = "volcano ash airport flights"


@pytest_asyncio.fixture(loop_scope="session")
async def url() -> AsyncIterator[str]:
    """A fresh service in memory with a short detector interval."""
    settings = Settings(
        store_url="memory", detector_interval_seconds=0.2, request_timeout_seconds=HANG_LIMIT_S
    )
    async with running(settings) as (_, address):
        yield address


async def press(page: Page, *keys: str) -> None:
    """Press single keys one after another."""
    for key in keys:
        await page.keyboard.press(key)


async def sign(page: Page, name: str = "Ann") -> None:
    """Give the browser the name of an editor."""
    await page.evaluate("name => localStorage.setItem('aggregator.actor', name)", name)


async def choose(page: Page, key: str, value: str) -> None:
    """Choose an entry of a menu by keyboard."""
    await page.keyboard.press(key)
    entry = page.locator(f"dialog[open] button[value={value}]")
    await entry.wait_for()
    while not await entry.evaluate("entry => entry === document.activeElement"):
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")


async def status(page: Page, text: str) -> None:
    """Wait for the status in the head of the report."""
    await expect(page.locator("#report .facts")).to_contain_text(text)


async def begin_on_the_list(ann: Page, volcano: str) -> None:
    """Mark an event as seen, undo that, and assign another one to a new name."""
    await ann.locator("#live.on").wait_for()
    await press(ann, "j", "j", "k", "a")
    await ann.get_by_role("textbox", name="Your name").wait_for()
    await ann.keyboard.type("Ann")
    await press(ann, "Enter")
    await ann.get_by_text("Marked as seen for everyone; it is under Handled now.").wait_for()
    await press(ann, "z")
    await ann.get_by_text("Undone.").wait_for()

    await ann.locator(f'#events [data-event="{volcano}"] h2 a').first.focus()
    await press(ann, "i")
    await ann.get_by_role("dialog", name="Who is on it?").wait_for()
    await ann.keyboard.type("Tomas")
    await press(ann, "Enter")
    await ann.get_by_text("“Tomas” has done nothing here yet.").wait_for()
    await press(ann, "Enter")


async def test_a_shift_by_keyboard(browser: Browser, url: str) -> None:
    """Events, seen, a name, a note, merge, undo, not news, search, back; a colleague sees each step."""
    bridge = await make_event(url)
    volcano = await make_event(url, VOLCANO)
    async with opened(browser, url) as ann, opened(browser, f"{url}/events/{volcano}") as ben:
        await begin_on_the_list(ann, volcano)
        await status(ben, "On it: Tomas")
        await press(ann, "o")
        await ann.wait_for_url(f"**/events/{volcano}")

        await ann.locator("#live.on").wait_for()
        await press(ann, "c")
        await ann.keyboard.type("Call the port.")
        await press(ann, "Control+Enter", "e", "w", "?")  # no key reaches the field that was left
        await ann.get_by_role("dialog", name="Keyboard shortcuts").wait_for()
        await press(ann, "Escape")
        await ben.locator(".notes li", has_text="Call the port.").wait_for()
        await expect(ann.locator("#note-text")).to_have_value("")
        assert "Call the port.e" not in await ben.locator(".notes").inner_text()
        await status(ben, "On it: Tomas")  # who has it keeps it

        await press(ann, "x")
        await ann.get_by_role("dialog", name="Merge into which event?").wait_for()
        await ann.keyboard.type("harbour")
        await press(ann, "Enter")
        await ann.wait_for_url(f"**/events/{bridge}")
        await ann.get_by_text("Merged.").wait_for()
        await ben.get_by_text("This event was merged").wait_for()
        await expect(ann.locator("#report .tiles dd").first).to_contain_text("32")
        await press(ann, "z")
        await expect(ann.locator("#report .tiles dd").first).to_contain_text("16")
        await status(ben, "On it: Tomas")

        await choose(ann, "m", "routine")
        await ann.locator("#report .state", has_text="Routine, no time limit").wait_for()
        await press(ann, "/")
        await ann.keyboard.type("volcano")
        await press(ann, "Enter")
        await ann.wait_for_url("**/search?q=volcano*")
        await ann.go_back()
        await ann.wait_for_url(f"**/events/{bridge}")
        await ann.locator("#live.on").wait_for()
        await press(ann, "u")
        await ann.wait_for_url(f"{url}/")


async def test_every_status_and_reason_is_undone(browser: Browser, url: str) -> None:
    """From the message for the menus; the history says who did what, and undoes it too."""
    async with opened(browser, f"{url}/events/{await make_event(url)}") as page:
        await sign(page)
        for value, shown in (
            ("seen", "Seen by Ann"), ("on_it", "On it: Ann"), ("published", "Marked as published by Ann"),
            ("dropped", "Dropped by Ann"), ("story", "Muted"), ("routine", "Routine, no time limit"),
            ("false_alarm", "False alarm"),
        ):  # fmt: skip
            await choose(
                page, "m" if shown in ("Muted", "Routine, no time limit", "False alarm") else "s", value
            )
            await status(page, shown)
            await page.get_by_role("button", name="Undo", exact=True).click()
            await page.get_by_text("Undone.").wait_for()
            # "Not handled" alone is also shown beside "Muted".
            await expect(page.locator("#report .facts")).not_to_contain_text(shown)
            await status(page, "Not handled")
        assert "Ann called it a false alarm" in await page.locator(".audit-trail").inner_text()
        await page.reload()
        await page.get_by_role("button", name="Undo: undid: called it a false alarm").click()
        await status(page, "False alarm")


async def test_what_a_colleague_did_is_not_undone(browser: Browser, url: str) -> None:
    """An action without effect says so, without Undo; work is taken over only if that is chosen."""
    async with opened(browser, f"{url}/events/{await make_event(url)}") as page:
        undo = page.get_by_role("button", name="Undo", exact=True)
        toast = page.locator("#toast")
        await sign(page, "Tom")
        await choose(page, "s", "on_it")
        await expect(toast).to_contain_text("On it.")
        await choose(page, "s", "on_it")
        await expect(toast).to_have_text("You are already on it.")
        await sign(page, "Mara")
        await choose(page, "s", "on_it")
        await expect(toast).to_contain_text("Tom is already on it.")
        await expect(toast.get_by_role("button")).to_have_text("Take over")
        await press(page, "z")
        await status(page, "On it: Tom")
        await choose(page, "s", "on_it")
        await toast.get_by_role("button", name="Take over").click()
        await status(page, "On it: Mara")
        await undo.click()
        await status(page, "On it: Tom")
        await choose(page, "s", "published")
        await status(page, "Marked as published by Mara")
        await sign(page, "Tom")
        await choose(page, "s", "published")
        await expect(toast).to_have_text("It is already marked as published, by Mara.")


async def test_selected_articles_leave_and_return(browser: Browser, url: str) -> None:
    """Removed, split off, moved to another event, each undone; the history names events and headlines."""
    bridge = await make_event(url)
    volcano = await make_event(url, VOLCANO)
    async with opened(browser, f"{url}/events/{volcano}") as page:
        await sign(page)
        size = page.locator("#report .tiles dd").first
        headline = await page.locator(".item .headline > :first-child").first.inner_text()
        for name, done in (
            ("Remove from event", "Removed from the event."), ("Split off", "Split off into a new event."),
            ("Move…", "Moved."),
        ):  # fmt: skip
            await page.evaluate("scrollTo(0, 0)")  # "j" begins with the first row in view
            await press(page, "j", "e", "j", "e")
            await page.get_by_text("2 selected").wait_for()
            await page.get_by_role("button", name=name, exact=True).press("Enter")
            if name == "Move…":
                await page.locator("#event-search").fill("harbour bridge")
                await page.get_by_role("button", name="Continue").press("Enter")
            await page.get_by_text(done).wait_for()
            await expect(size).to_contain_text("14")
            await page.locator("#selection").wait_for(state="hidden")
            if name == "Split off":
                new = await page.get_by_role("link", name="Open it").get_attribute("href")
            undo = page.locator(".audit-trail li").first.get_by_role("button", name="Undo")
            if name == "Move…":
                await page.reload()
                await undo.click()
            else:
                await press(page, "z")
            await expect(size).to_contain_text("16")
        history = await page.locator(".audit-trail").inner_text()
        assert f"moved “{headline}” and 1 more to “Harbour bridge closed" in history.replace("\n", " ")
        await page.goto(f"{url}{new}")
        await page.get_by_text("split this event off").wait_for()
        await page.goto(f"{url}/events/{bridge}")
        await expect(page.locator("#report .tiles dd").first).to_contain_text("16")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_menus_and_selection_are_accessible(browser: Browser, url: str, scheme: str) -> None:
    """Nothing serious, no target below 24 px, on a desk and on a phone."""
    event = await make_event(url)
    await make_event(url, VOLCANO)
    for width in (1280, 390):
        options = {"color_scheme": scheme, "viewport": {"width": width, "height": 844}}
        async with opened(browser, url, **options) as page:
            await sign(page)
            assert await accessibility_violations(page, targets=True) == []
            for key in ("s", "m"):
                await press(page, "j", key)
                await page.locator("dialog.menu[open]").wait_for()
                assert await accessibility_violations(page, targets=True) == []
                box = await page.locator("dialog.menu[open]").bounding_box()
                assert box and box["x"] >= 0 and box["x"] + box["width"] <= width
                await press(page, "Escape")
            await page.goto(f"{url}/events/{event}")
            await page.locator("[data-select]").first.check()
            await page.locator("#selection").wait_for()
            assert await accessibility_violations(page, targets=True) == [] and await overflow_px(page) <= 0
            await press(page, "i")
            await page.locator("#name-dialog[open]").wait_for()
            assert await accessibility_violations(page, targets=True) == []
