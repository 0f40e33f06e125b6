"""The page of the API: it fits with everything opened, is accessible, and sends the requests of its forms."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Browser

from tests.browser.pages import accessibility_violations, opened, overflow_px
from tests.support.fake_service import Client, FakeService, serving

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SOME = ("postArticle", "postRelated", "listEvents", "getSource", "postDesk")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
async def test_opened_operations_fit_and_are_accessible(
    browser: Browser, client: Client, width: int, scheme: str
) -> None:
    """No horizontal scrolling of the page; no severe finding of axe."""
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    async with opened(browser, client.make_url("/docs"), **options) as page:
        for operation in SOME:
            await page.locator(f"#{operation} > summary").click()

        assert await overflow_px(page) <= 0
        assert await accessibility_violations(page, *(f"#{operation}" for operation in SOME)) == []


async def test_a_request_is_tried_with_a_key(browser: Browser) -> None:
    """The key of the field is sent and stored nowhere; the answers are shown, by keyboard alone."""
    service = FakeService()
    _, key = await service.edge.api_keys.add("Ada", "admin")
    async with serving(service) as client, opened(browser, client.make_url("/docs#postDesk")) as page:
        form = page.locator("#postDesk form.try")
        await page.locator("#try-key").fill(key)
        await form.locator("button").press("Enter")
        await form.locator("output", has_text="201 Created").wait_for()

        desks = page.locator("#listDesks")
        await desks.locator("summary").press("Enter")
        await desks.locator("form.try button").press("Enter")
        await desks.locator("output", has_text="Harbour desk").wait_for()
        stored = await page.evaluate(
            "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
        )

        assert key not in stored
        assert key not in page.url
