"""New events are noticed: section on top, button, tab title and icon, sound and notification, other pages."""

from __future__ import annotations

import aiohttp
import pytest
from playwright.async_api import Browser, Page, expect

from aggregator.events.event import Event
from tests.browser.pages import accessibility_violations, opened
from tests.browser.test_live import make_event, url
from tests.support.factories import EVENT_MS, event
from tests.support.fake_service import Client, FakeService

__all__ = ["url"]  # the fixture
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TITLE = "Breaking now · News aggregator"


def rows(count: int) -> list[Event]:
    """Events of decreasing urgency, detected one after another."""
    return [
        event(
            f"e{n}",
            f"Story number {n}",
            ("a",) * 9,
            detected_at_ms=EVENT_MS - 9000 + n,
            timeline=((EVENT_MS, 99 - n),),
        )
        for n in range(count)
    ]


LATE = event("late", "The late story", ("a",) * 9)


async def listed(page: Page, section: str) -> list[str]:
    """Keys of the rows of a list."""
    keys: list[str] = await page.eval_on_selector_all(
        f"#{section} > li", "nodes => nodes.map(n => n.dataset.key)"
    )
    return keys


async def test_a_new_event_is_on_top_and_counted(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """However low its rank: first in its own section, and a number in the tab title and the icon."""
    service.fake_events.stored = rows(20)
    async with opened(browser, client.make_url("/"), viewport={"width": 1000, "height": 600}) as page:
        assert await page.title() == TITLE
        await expect(page.locator("#new-section")).not_to_be_visible()
        service.fake_events.stored = [*rows(20), LATE]
        await page.locator("#events-new").get_by_text("The late story").wait_for()

        assert (await listed(page, "events-new"), await listed(page, "events")) == (
            ["elate"],
            [f"ee{n}" for n in range(20)],
        )
        assert await page.title() == f"(1) {TITLE}"
        await expect(page.locator("link[rel=icon]")).to_have_attribute("href", "/static/icon-1.svg")
        await expect(page.locator("#new-section")).to_be_visible()
        await expect(page.locator("#new-events")).not_to_be_visible()
        assert await accessibility_violations(page) == []


async def test_the_button_leads_to_a_new_event_out_of_view(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """While the list is scrolled: what is in view stays, and a button goes to the new section."""
    service.fake_events.stored = rows(20)
    async with opened(browser, client.make_url("/"), viewport={"width": 1000, "height": 600}) as page:
        await page.locator("[data-key=ee15]").scroll_into_view_if_needed()
        before = await page.locator("[data-key=ee15]").bounding_box()
        service.fake_events.stored = [*rows(20), LATE]
        button = page.get_by_role("button", name="1 new event")
        await button.wait_for()
        assert await page.title() == f"(1) {TITLE}"
        after = await page.locator("[data-key=ee15]").bounding_box()
        assert before and after and abs(before["y"] - after["y"]) <= 1

        await button.click()
        await page.locator("#new-events").wait_for(state="hidden")
        assert await page.evaluate("document.activeElement.textContent") == "The late story"


async def test_events_stay_new_until_the_reader_looked(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Across visits and pages of the browser, until the report is opened or all are marked as seen."""
    context = await browser.new_context(bypass_csp=True)  # for wait_for_function
    page = await context.new_page()
    address = str(client.make_url("/"))
    service.fake_events.stored = rows(2)
    await page.goto(address)
    await page.wait_for_function("localStorage['aggregator.read']")
    service.fake_events.stored = [*rows(4), LATE]
    await page.goto(address)
    await page.goto(address)
    assert await listed(page, "events-new") == ["ee2", "ee3", "elate"]

    await page.goto(f"{address}events/late")
    await page.wait_for_function("document.title.startsWith('(2) The late story')")
    await page.goto(address)
    assert await listed(page, "events-new") == ["ee2", "ee3"]
    assert "elate" in await listed(page, "events")

    other = await context.new_page()
    await other.goto(f"{address}health")
    await other.wait_for_function("document.title.startsWith('(2) ')")
    await page.get_by_role("button", name="Clear, only for you").click()
    await page.locator("#new-section").wait_for(state="hidden")
    assert sorted(await listed(page, "events")) == ["ee0", "ee1", "ee2", "ee3", "elate"]
    await other.wait_for_function("!document.title.startsWith('(')")
    await context.close()


async def test_two_browsers_of_a_user_agree(browser: Browser, client: Client, service: FakeService) -> None:
    """With access keys the mark is on the server; another user has another one."""
    keys = [(await service.edge.api_keys.add(name, "editor"))[1] for name in ("Ann", "Ben")]
    service.fake_events.stored = rows(1)
    pages = []
    for key in (keys[0], keys[0], keys[1]):
        page = await (await browser.new_context(bypass_csp=True)).new_page()
        await page.goto(str(client.make_url("/sign-in")))
        await page.locator("input[name=key]").fill(key)
        await page.keyboard.press("Enter")
        await page.wait_for_function("localStorage['aggregator.read']")
        pages.append(page)
    service.fake_events.stored = [*rows(1), LATE]
    for page in pages:
        await page.locator("#events-new").get_by_text("The late story").wait_for()

    clear = pages[0].get_by_role("button", name="Clear, only for you")
    await clear.click()
    await pages[0].get_by_role("button", name="Undo").click()
    await pages[0].locator("#events-new").get_by_text("The late story").wait_for()
    await clear.click()
    await pages[0].reload()  # leaving the page keeps what could have been undone
    for page in pages[:2]:
        await page.locator("#new-section").wait_for(state="hidden")
    await expect(pages[2].locator("#new-section")).to_be_visible()
    for page in pages:
        await page.context.close()


async def test_a_report_opened_by_its_link_is_seen(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Also in a browser that has shown no front page yet, such as one that opens the link of a message."""
    _, key = await service.edge.api_keys.add("Ann", "editor")
    service.fake_events.stored = rows(2)
    for first in ("/", "/events/late"):
        async with opened(browser, client.make_url(f"/sign-in?next={first}")) as page:
            await page.locator("input[name=key]").fill(key)
            async with page.expect_response("**/v1/read-mark"):
                await page.keyboard.press("Enter")
            if first == "/":
                service.fake_events.stored = [*rows(2), LATE]
                continue
            await page.goto(str(client.make_url("/")))
            await expect(page.locator("#events .event")).to_have_count(3)
            await expect(page.locator("#new-section")).not_to_be_visible()


async def test_a_filtered_page_marks_only_what_it_lists(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """An event that the filter hides stays new."""
    context = await browser.new_context(bypass_csp=True)  # for wait_for_function
    page = await context.new_page()
    address = str(client.make_url("/"))
    await page.goto(address)
    await page.wait_for_function("localStorage['aggregator.read']")
    service.fake_events.stored = [*rows(1), LATE]
    await page.goto(f"{address}?term=late")
    await page.get_by_role("button", name="Clear, only for you").click()
    await page.locator("#new-section").wait_for(state="hidden")
    await page.goto(address)

    assert await listed(page, "events-new") == ["ee0"]
    await context.close()


@pytest.mark.parametrize("path", ["/search", "/health", "/events/{first}"])
async def test_another_page_tells_of_a_new_event(browser: Browser, url: str, path: str) -> None:
    """A button with the headline, the tab title and a message for screen readers; the button opens it."""
    first = await make_event(url)
    async with opened(browser, f"{url}/", bypass_csp=True) as page:
        await page.wait_for_function("localStorage['aggregator.read']")
        await page.goto(url + path.format(first=first))
        await page.locator("body[data-stream-state=on]").wait_for()
        title = await page.title()
        second = await make_event(url, "volcano ash airport flights")
        button = page.locator("#new-events")
        await button.wait_for()

        assert (await button.inner_text()).startswith("1 new event: Volcano ash airport flights")
        for width in (1280, 390):
            await page.set_viewport_size({"width": width, "height": 700})
            main, bar = await page.locator("main").bounding_box(), await button.bounding_box()
            assert main and bar and main["y"] >= bar["y"] + bar["height"]  # it covers nothing
        assert await page.title() == f"(1) {title}"
        assert "Volcano" in await page.locator("#announcement").inner_text()
        assert await accessibility_violations(page) == []
        await button.click()
        await page.wait_for_url(f"**/events/{second}")
        await page.wait_for_function("!document.title.startsWith('(')")


# Replaces the parts of the browser that show notifications and play sounds.
RECORDER = """
window.alerts = [];
window.Notification = class {
  constructor(title, options) { alerts.push([title, options.body, options.tag]); }
};
Notification.permission = "default";
Notification.requestPermission = async () => (Notification.permission = "granted");
const start = OscillatorNode.prototype.start;
OscillatorNode.prototype.start = function (at) { alerts.push(this.frequency.value); start.call(this, at); };
"""


async def test_sound_and_notification_are_chosen_in_a_dialog(browser: Browser, url: str) -> None:
    """Both are off at first. The sound plays; a notification only while the reader looks elsewhere."""
    context = await browser.new_context(bypass_csp=True)  # for wait_for_function
    await context.add_init_script(RECORDER)
    page = await context.new_page()
    await page.goto(url)
    await make_event(url)
    await page.locator("#events-new .event").wait_for()
    assert await page.evaluate("alerts") == []

    await page.get_by_role("button", name="Alerts").click()
    assert await accessibility_violations(page) == []
    await page.get_by_label("Sound: two short tones").check()
    await page.get_by_label("Desktop notification").check()
    await page.wait_for_function("alerts.length === 2")
    await page.get_by_role("button", name="Done").click()
    await make_event(url, "volcano ash airport flights")
    await page.wait_for_function("alerts.length === 4")
    assert await page.evaluate("alerts") == [880, 1175, 880, 1175]

    await page.evaluate("document.hasFocus = () => false")
    third = await make_event(url, "election parliament coalition talks")
    await page.wait_for_function("alerts.length === 7")
    shown = await page.evaluate("alerts[4]")
    assert (shown[1], shown[2]) == ("16 items from 16 sources", third)

    async with aiohttp.ClientSession(url) as session:
        await session.post("/v1/desks", json={"name": "Mountains", "terms": ["glacier"]})
    await page.get_by_role("button", name="Alerts").click()
    await page.get_by_label("For", exact=True).select_option(label="Mountains")
    await page.get_by_role("button", name="Done").click()
    await make_event(url, "museum theft paintings guards")
    fourth = await make_event(url, "glacier lake dam valley")
    await page.wait_for_function("alerts.length === 10")
    assert await page.evaluate("alerts[7][2]") == fourth
    await context.close()
