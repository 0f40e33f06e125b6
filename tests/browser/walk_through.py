"""An editor's walk-through in ten steps over the demonstration: clicks and times of the machine.

python -m tests.browser.walk_through

Each time runs from the first click or key of a step until its result is visible, without reading.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from playwright.async_api import Page, async_playwright

from tests.browser.chromium import CHROMIUM, FLAGS
from tests.browser.replayed_service import Clock, demo_articles, replayed
from tests.browser.test_live import post, report

NEW_STORY = "volcano ash airport flights"


class Editor:
    """Someone who opens the pages for the first time. Each method is a step and returns after its result."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.word = ""  # of the headline of the first event

    async def see_what_is_breaking(self) -> None:
        """Front page."""
        await self.page.goto(self.url)
        await self.page.locator("#events .event h2").first.wait_for()

    async def open_the_first_event(self) -> None:
        """Its report, with all articles."""
        headline = self.page.locator("#events .event h2 a").first
        self.word = max((await headline.inner_text()).split(), key=len)
        await headline.click()
        await self.page.locator(".article-rows .item").first.wait_for()

    async def see_who_had_it_first(self) -> None:
        """Outlets in order, and back."""
        await self.page.get_by_role("link", name="Who had it first").click()
        await self.page.locator(".first-box").wait_for()
        await self.page.go_back()
        await self.page.locator(".article-rows .item").first.wait_for()

    async def take_it(self) -> None:
        """The name is asked for once."""
        await self.page.get_by_role("button", name="Status…").click()
        await self.page.get_by_role("button", name="I am on it").click()
        await self.page.get_by_role("textbox", name="Your name").fill("Ann")
        await self.page.keyboard.press("Enter")
        await self.page.locator(".work", has_text="On it: Ann").wait_for()

    async def leave_a_note(self) -> None:
        """For colleagues."""
        await self.page.get_by_label("New note").fill("Called the port: closed until Monday.")
        await self.page.get_by_role("button", name="Add note").click()
        await self.page.locator(".notes li", has_text="closed until Monday").wait_for()

    async def acknowledge_it(self) -> None:
        """With one key; it alerts nobody any more."""
        await self.page.keyboard.press("a")
        await self.page.locator(".facts", has_text="Seen by Ann").wait_for()

    async def search_an_article(self) -> None:
        """From the keyboard; the event comes first."""
        await self.page.keyboard.press("/")
        await self.page.keyboard.type(self.word)
        await self.page.keyboard.press("Enter")
        await self.page.locator("main .headline").first.wait_for()

    async def follow_a_new_event(self) -> None:
        """It fires while the search is open; the time includes the arrival of its 16 articles."""
        await post(self.url, *(report(n, NEW_STORY) for n in range(16)))
        await self.page.locator("#new-events", has_text="1 new event").click()
        await self.page.locator(".article-rows .item").first.wait_for()

    async def mute_a_routine_story(self) -> None:
        """The last row of the front page."""
        await self.page.get_by_role("link", name="Events", exact=True).first.click()
        await self.page.locator("#live.on").wait_for()  # the buttons work once the scripts have started
        await self.page.locator("#events [data-menu=not-news-menu]").last.click()
        await self.page.get_by_role("button", name="Mute story").click()
        await self.page.get_by_text("Story muted for 7 days.").wait_for()

    async def make_a_desk(self) -> None:
        """A saved view of one topic, and its events."""
        await self.page.locator(".filter summary").click()
        await self.page.get_by_label("Word of the headline or a key term").fill(self.word)
        await self.page.keyboard.press("Enter")
        await self.page.get_by_role("button", name="Save as desk").click()
        await self.page.get_by_role("button", name="Create desk").click()
        await self.page.get_by_role("link", name="Show its events").click()
        await self.page.locator(".event:visible").first.wait_for()


# Step, clicks, keys apart from typed words.
STEPS: tuple[tuple[Callable[[Editor], Awaitable[None]], int, int], ...] = (
    (Editor.see_what_is_breaking, 0, 0), (Editor.open_the_first_event, 1, 0),
    (Editor.see_who_had_it_first, 2, 0), (Editor.take_it, 2, 1), (Editor.leave_a_note, 2, 0),
    (Editor.acknowledge_it, 0, 1), (Editor.search_an_article, 0, 2), (Editor.follow_a_new_event, 1, 0),
    (Editor.mute_a_routine_story, 3, 0), (Editor.make_a_desk, 4, 1),
)  # fmt: skip


async def main() -> None:
    """Print a row per step."""
    clock = Clock()
    articles = demo_articles(clock())
    async with replayed(articles, clock) as (_, url), async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = await browser.new_page()
        page.set_default_timeout(120_000)
        editor = Editor(page, url)
        print(f"{'step':<24}{'clicks':>7}{'keys':>6}{'s':>8}")
        for step, clicks, keys in STEPS:
            began_s = time.monotonic()
            await step(editor)
            name = step.__name__.replace("_", " ")
            print(f"{name:<24}{clicks:>7}{keys:>6}{time.monotonic() - began_s:>8.2f}", flush=True)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
