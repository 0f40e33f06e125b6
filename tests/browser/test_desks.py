"""Desks in a browser over the real service: made, tested and notified, with a mail server and a receiver."""

from __future__ import annotations

import email
import email.policy
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, Page, expect

from aggregator.settings import Settings
from tests.browser.pages import accessibility_violations, opened, overflow_px
from tests.browser.test_live import make_event, running
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.mail_server import MailServer, mail_server

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def mail() -> AsyncIterator[MailServer]:
    """A mail server on loopback."""
    async with mail_server() as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def url(mail: MailServer) -> AsyncIterator[str]:
    """A fresh service in memory that sends its mail to ``mail`` and may call loopback."""
    settings = Settings(
        store_url="memory",
        detector_interval_seconds=0.2,
        request_timeout_seconds=HANG_LIMIT_S,
        webhook_allow_private_addresses=True,
        smtp_url=f"smtp://127.0.0.1:{mail.port}",
        smtp_sender="news@newsroom.example",
    )
    async with running(settings) as (_, address):
        yield address


@pytest_asyncio.fixture(loop_scope="session")
async def receiver() -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """URL of a webhook receiver, and what it got."""
    calls: list[dict[str, Any]] = []

    async def receive(request: web.Request) -> web.Response:
        calls.append(await request.json())
        return web.Response()

    app = web.Application()
    app.router.add_post("/in", receive)
    async with TestServer(app) as server:
        yield str(server.make_url("/in")), calls


async def make_desk(page: Page, **fields: str) -> None:
    """Fill in the form of a new desk and submit it."""
    await page.get_by_label("Name of the desk").fill("Harbour")
    for label, text in fields.items():
        await page.get_by_label(label.replace("__", ", ").replace("_", " "), exact=True).fill(text)
    await page.get_by_role("button", name="Create desk").click()
    await page.get_by_text("The desk was created.").wait_for()


async def add_target(page: Page, kind: str, address: str) -> None:
    """Add a target to the open desk."""
    await page.get_by_label("Notify by").select_option(label=kind)
    await page.get_by_label("Address", exact=True).fill(address)
    await page.get_by_role("button", name="Add target").click()
    await page.get_by_text("Added. Send a test").wait_for()


async def test_a_desk_is_made_tested_and_notified(
    browser: Browser, url: str, mail: MailServer, receiver: tuple[str, list[dict[str, Any]]]
) -> None:
    """Both targets get the test and then the event; the page shows the results without a reload."""
    async with opened(browser, f"{url}/desks") as page:
        await make_desk(page, Terms__places_or_topics="bridge, Brackwater", At_this_many_items="16")
        await add_target(page, "E-mail", "desk@newsroom.example")
        await add_target(page, "A program of yours (signed webhook)", receiver[0])
        await page.get_by_role("button", name="Send test to E-mail").click()
        await page.get_by_text("The test to E-mail desk@newsroom.example was delivered.").wait_for()
        await page.get_by_role("button", name="Send test to Webhook").click()
        await page.get_by_text("was delivered.").wait_for()
        assert await accessibility_violations(page) == []

        event = await make_event(url)
        row = page.locator(".history tr", has_text="Harbour: Harbour bridge")
        await row.nth(1).wait_for()
        await expect(row.locator(".ack")).to_have_count(2)
        await expect(row.first.get_by_role("link").first).to_have_attribute("href", f"/events/{event}")
        await expect(page.locator(".preview .headline a")).to_have_attribute("href", f"/events/{event}")
    subjects = [
        email.message_from_bytes(envelope.content, policy=email.policy.default)["Subject"]
        for envelope in mail.envelopes
    ]

    assert [call["type"] for call in receiver[1]] == ["ping", "desk.alert"]
    assert receiver[1][1]["data"]["events"][0]["id"] == event
    assert subjects[0] == "Harbour: test notification" and subjects[1].startswith("Harbour: Harbour bridge")


async def test_a_desk_is_made_without_scripts(browser: Browser, url: str) -> None:
    """By forms and redirects alone; a problem keeps what was typed."""
    async with await browser.new_context(java_script_enabled=False) as context:
        page = await context.new_page()
        await page.goto(f"{url}/desks")
        await page.get_by_label("From", exact=True).fill("22:00")
        await page.get_by_label("Name of the desk").fill("Harbour")
        await page.get_by_role("button", name="Create desk").click()
        await page.get_by_role("alert").get_by_text("Until: give both ends").wait_for()
        await page.get_by_label("Until", exact=True).fill("06:00")
        await page.get_by_role("button", name="Create desk").click()
        await page.get_by_text("quiet from 22:00 to 06:00 (UTC)").wait_for()


async def test_a_removal_can_be_undone_for_ten_seconds(browser: Browser, url: str) -> None:
    """Of a target and of a desk; it is sent after that time, and at once where the page is left."""
    async with opened(browser, f"{url}/desks") as page:
        await page.clock.install()
        await make_desk(page)
        desk, targets = page.url.partition("?")[0], page.locator(".target-list li")
        await add_target(page, "E-mail", "desk@newsroom.example")
        await page.locator(".remove summary").click()
        await page.get_by_role("button", name="Remove it").click()
        await page.get_by_text(
            "E-mail desk@newsroom.example: will be removed in 10 s, or when you leave"
        ).wait_for()
        await page.get_by_role("button", name="Undo").click()
        await page.clock.fast_forward(20_000)
        await page.reload()
        await expect(targets).to_have_count(1)

        await page.locator(".remove summary").click()
        await page.get_by_role("button", name="Remove it").click()
        await page.mouse.move(0, 0)
        await page.clock.fast_forward(20_000)
        await expect(targets).to_have_count(0)
        await page.get_by_text("Delete this desk").click()
        await page.get_by_role("button", name="Delete desk").click()
        await page.get_by_text("Desk Harbour: will be removed in 10 s, or when you leave").wait_for()
        await page.goto(f"{url}/health")
        while (await page.request.get(desk)).status != 404:  # as long as the removal takes
            pass


async def test_a_filter_is_saved_as_a_desk(browser: Browser, url: str) -> None:
    """With a preview of its events first, and a name; without scripts."""
    async with opened(browser, f"{url}/?term=bridge&min_size=20", java_script_enabled=False) as page:
        await page.get_by_role("button", name="Save as desk").click()
        await expect(page.get_by_label("Name of the desk")).to_have_value("bridge")
        await page.get_by_role("button", name="Create desk").click()
        await page.get_by_text("The desk was created.").wait_for()
        await expect(page.get_by_label("Minimum items")).to_have_value("20")


async def test_a_desk_is_made_by_keyboard(browser: Browser, url: str) -> None:
    """Tab, typing and Enter."""
    async with opened(browser, f"{url}/desks") as page:
        await page.get_by_label("Name of the desk").focus()
        await page.keyboard.type("Harbour")
        await page.keyboard.press("Tab")
        await page.keyboard.type("bridge")
        await page.keyboard.press("Enter")
        await page.get_by_text("The desk was created.").wait_for()
        await expect(page.get_by_label("Terms, places or topics")).to_have_value("bridge")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
async def test_the_pages_are_accessible_and_fit(browser: Browser, url: str, width: int, scheme: Any) -> None:
    """The list, a desk with a failing target, the history; empty and filled."""
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    async with opened(browser, f"{url}/desks", **options) as page:
        assert await accessibility_violations(page) == []
        await make_desk(page)
        assert await accessibility_violations(page) == []
        await add_target(page, "A program of yours (signed webhook)", "http://127.0.0.1:1/" + "x" * 200)
        await page.get_by_role("button", name="Send test").click()
        await page.get_by_text("failed: cannot connect").first.wait_for()
        desk = page.url.partition("?")[0]
        await page.get_by_role("link", name="History of").click()
        for address in (page.url, desk, f"{url}/webhooks", f"{url}/desks"):
            await page.goto(address)
            assert await accessibility_violations(page) == [], address
            assert await overflow_px(page) <= 0, address
