"""The tour of the front page in a demonstration: four hints, by keyboard, dismissed for good."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.pages import accessibility_violations, opened, overflow_px
from tests.support.fake_service import Client, FakeService

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def visible_hint(page: Page) -> str:
    """Position and first words of the hint that is shown."""
    hint = await page.locator("#tour .hint:visible b").inner_text()
    return f"{await page.locator('#tour-position').inner_text()}: {hint}"


@pytest.mark.parametrize("width", [1280, 390])
async def test_hints_follow_each_other_until_they_are_dismissed(
    browser: Browser, client: Client, service: FakeService, width: int
) -> None:
    """Only the keyboard is used; axe finds nothing severe; a reload shows no hint again."""
    service.settings = replace(service.settings, demo=True)
    async with opened(browser, client.make_url("/"), viewport={"width": width, "height": 800}) as page:
        hints = [await visible_hint(page)]
        violations = await accessibility_violations(page)
        await page.focus("#tour-next")
        for _ in range(3):
            await page.keyboard.press("Enter")
            hints.append(await visible_hint(page))
        overflow = await overflow_px(page)
        await page.keyboard.press("Escape")
        hidden_at_once = await page.locator("#tour").is_hidden()
        await page.reload()

        assert hints == [
            "Hint 1 of 4: Breaking now.",
            "Hint 2 of 4: Just in.",
            "Hint 3 of 4: Search.",
            "Hint 4 of 4: Ended",
        ]
        assert (violations, overflow, hidden_at_once) == ([], 0, True)
        assert await page.locator("#tour").is_hidden()


async def test_a_service_without_a_demonstration_has_no_tour(browser: Browser, client: Client) -> None:
    """The hints name invented stories."""
    async with opened(browser, client.make_url("/")) as page:
        await expect(page.locator("#tour")).to_have_count(0)
