"""The pages over the fake service: layout, accessibility, live updates, keyboard, errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from playwright.async_api import Browser, Page, expect

from aggregator.events.detection.model import LearnedHistory
from aggregator.events.detection.top_stories import TopStory
from aggregator.events.event import Event
from aggregator.time_units import HOUR_MS
from tests.browser.pages import accessibility_violations, opened, overflow_px
from tests.support.factories import EVENT_MS, event
from tests.support.fake_service import START_MS, Client, FakeService

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

NOW_S = START_MS / 1000 + 420
HEADLINES = [
    ("en", "Harbour bridge closed after overnight storm damages two cables", "harbourpost.example"),
    ("zh", "港口大桥因暴风雨受损关闭 工程师连夜检查缆索", "gangkou.example"),
    ("ar", "إغلاق جسر الميناء بعد عاصفة ليلية ألحقت أضرارا بكابلين", "almina.example"),
    (
        "de",
        "Hafenbrücke nach Sturm gesperrt: Donaudampfschifffahrtsgesellschaftskapitänsvereinigung warnt",
        "hafenblatt.example",
    ),
    ("he", "הגשר בנמל נסגר לאחר הסופה (2 כבלים ניזוקו)", "namal.example"),
]


async def post_articles(client: Client, count: int = 30) -> None:
    """Store articles in several scripts; every fifth is a duplicate."""
    for n in range(count):
        lang, title, source = HEADLINES[n % len(HEADLINES)]
        text = "The same agency story." if n % 5 == 4 else f"Report number {n} with its own words."
        body = {
            "id": f"a{n}",
            "title": f"{title} ({n})",
            "text": text,
            "lang": lang,
            "source": source,
            "url": f"https://{source}/{n}",
        }
        await client.post("/v1/articles", json=body)


def events() -> list[Event]:
    """One event of each status, two of them in other scripts, one muted."""
    names = [source for _, _, source in HEADLINES]
    ids = [f"a{n}" for n in range(12)]
    return [
        event(
            "e1", HEADLINES[0][1], ids, size=23, sources=(*names, *(f"paper{n}.example" for n in range(7)))
        ),
        event("e2", HEADLINES[1][1], ids, size=17, sources=tuple(names[:3]), languages=("zh",)),
        event("e3", HEADLINES[2][1], ids, status="emerging", sources=(names[2],), languages=("ar",)),
        event("e4", "Ferry service resumes after fog", ids, size=40, status="fading", acknowledged_by="Ann"),
        event("e5", "Fund prices of the day", ids, muted="routine"),
        event("e6", "Strike at the harbour is over", ids, status="closed"),
    ]


PATHS = (
    "/",
    "/?lang=en&sort=size",
    "/?kiosk=1",
    "/events/e1",
    "/search",
    "/search?q=a4",
    "/search?q=bridge",
    "/search?q=bridge+harbour+ferry+fog+closed+gust",
    "/days/2026-09-21",
    "/days?since=2026-01-01T00:00:00Z",
    "/compare",
    "/health",
    "/docs",
)
# Links of below 24 px, which a finger misses.
LOW_TARGETS = """links => links.map(link => [link.getBoundingClientRect().height, link.textContent])
    .filter(([height]) => 0 < height && height < 24)"""
# All operations look alike, and axe takes 12 s for all of them.
DOCS_PARTS = ("header", "#postArticle", "#listEvents")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_pages_fit_and_load_nothing_from_other_hosts(
    browser: Browser, client: Client, service: FakeService, width: int, scheme: str
) -> None:
    """No horizontal scrolling, no console message, no request to another host; empty and filled."""
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    async with opened(browser, client.make_url("/"), **options) as page:
        await expect(page.locator("pre")).to_have_count(1)
        await post_articles(client)
        service.fake_events.stored = events()
        for path in (*PATHS, "/sources"):
            await page.goto(str(client.make_url(path)))
            assert await overflow_px(page) <= 0, path
            low = await page.locator("main :is(a, summary)").evaluate_all(LOW_TARGETS)
            assert path == "/docs" or low == [], (path, low)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
async def test_pages_are_accessible(
    browser: Browser, client: Client, service: FakeService, width: int, scheme: str
) -> None:
    """No severe finding of axe on any page; empty and filled."""
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    async with opened(browser, client.make_url("/"), **options) as page:
        assert await accessibility_violations(page) == []
        await post_articles(client, 10)
        service.fake_events.stored = events()
        for path in PATHS:
            await page.goto(str(client.make_url(path)))
            parts = DOCS_PARTS if path == "/docs" else ()
            assert await accessibility_violations(page, *parts) == [], path


async def test_events_are_in_their_lists(browser: Browser, client: Client, service: FakeService) -> None:
    """Open events, those that editors have handled, ended ones."""
    service.fake_events.stored = events()
    async with opened(browser, client.make_url("/")) as page:
        listed = await page.eval_on_selector_all("#events > li", "nodes => nodes.map(n => n.dataset.key)")
        assert sorted(listed) == ["ee1", "ee2", "ee3"]
        await expect(page.locator("#events-handled > li")).to_have_count(2)
        await expect(page.locator("#events-closed > li")).to_have_count(1)


async def test_a_phone_shows_events_at_once_with_their_facts(
    browser: Browser, client: Client, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the upper half of the screen; a row keeps its state, time and numbers, the note all its words."""
    service.fake_events.stored = events()
    learnt = AsyncMock(return_value=LearnedHistory(START_MS // HOUR_MS, {START_MS // HOUR_MS: 5}))
    monkeypatch.setattr(service.fake_events, "learned_history", learnt)
    async with opened(browser, client.make_url("/"), viewport={"width": 390, "height": 844}) as page:
        rows = page.locator("#events > li")
        top = await rows.first.bounding_box()
        assert top and top["y"] < 320
        await expect(page.locator("#learning")).to_contain_text("unrelated stories as one.")
        assert await page.locator("#learning").evaluate("note => note.scrollWidth <= note.clientWidth")
        for row in await rows.all():
            for part in (".state", ".facts time", ".counts div:first-child", ".counts div:last-child"):
                outer, inner = await row.bounding_box(), await row.locator(part).first.bounding_box()
                assert outer and inner and inner["y"] + inner["height"] <= outer["y"] + outer["height"], part


# Parts of a row that are outside of it, not visible in full or over another part.
ROW_FAULTS = """row => {
    const texts = ["h2 a", ".facts > *", ".sources", ".counts dt", ".counts dd", ".row-actions button"];
    const parts = [...row.querySelectorAll(texts)]
        .filter(part => part.checkVisibility({ opacityProperty: true }));
    const [outer, ...boxes] = [row, ...parts].map(part => part.getBoundingClientRect());
    const isCut = box => box && box.scrollHeight > box.clientHeight + 1;
    const areOver = (a, b) => a !== b && a.left < b.right - 1 && b.left < a.right - 1
        && a.top < b.bottom - 4 && b.top < a.bottom - 4;
    return parts.filter((part, n) => boxes[n].right > outer.right || boxes[n].bottom > outer.bottom
            || isCut(part.closest(".facts, .counts")) || boxes.some(other => areOver(boxes[n], other)))
        .map(part => part.textContent.trim());
}"""


@pytest.mark.parametrize("density", ["compact", "comfortable"])
@pytest.mark.parametrize("width", [390, 1280])
async def test_no_part_of_a_row_is_cut_off_or_over_another(
    browser: Browser, client: Client, service: FakeService, width: int, density: str
) -> None:
    """With a newer figure, a development, doubtful articles and a long name; its numbers are in one line."""
    tolls = ((EVENT_MS, "dead", 176), (EVENT_MS, "injured", 1240))
    service.fake_events.stored = [
        event(
            "e1", "Chemical plant explosion shakes Port Lindow: 12 dead, 90 injured", ["a0"], size=1346,
            languages=("en",), tolls=tolls, developments=((EVENT_MS, ("ammonia", "evacuated", "hospital")),),
            doubtful=("a0",), assignee="Maximiliane Mustermann-Karlsson", sources=("Harbour Courier",) * 25,
        ),
    ]  # fmt: skip
    async with opened(browser, client.make_url("/"), viewport={"width": width, "height": 900}) as page:
        await page.evaluate("density => localStorage.setItem('aggregator.density', density)", density)
        await page.reload()
        row = page.locator("#events > li")
        for said in ("2+ outlets: 176 dead, 1\u202f240 injured", "Maximiliane", "hospital", "1 doubtful"):
            await expect(row).to_contain_text(said)
        assert await row.evaluate(ROW_FAULTS) == []
        numbers = [await dd.bounding_box() for dd in await row.locator(".counts dd:not(.doubtful)").all()]
        assert len({round(box["y"]) for box in numbers if box}) == 1
        assert (headline := await row.locator("h2 a").bounding_box()) and headline["width"] >= 300
        assert await page.locator("main :is(a, summary)").evaluate_all(LOW_TARGETS) == []


async def test_a_phone_has_charts_in_their_cards_and_one_line_of_tools(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Also for a reader with a long name, on pages that are live."""
    await post_articles(client)
    service.fake_events.stored = events()
    async with opened(browser, client.make_url("/"), viewport={"width": 390, "height": 844}) as page:
        await page.evaluate("localStorage.setItem('aggregator.actor', 'Maximiliane Mustermann')")
        for path in ("/", "/events/e1", "/health"):
            await page.goto(str(client.make_url(path)))
            await expect(page.locator("#actor")).to_be_visible()
            tools, brand = [await page.locator(of).bounding_box() for of in (".bar-tools", ".brand")]
            assert tools and brand and abs(tools["y"] - brand["y"]) < 16, path
            assert tools["height"] < 40 and tools["x"] + tools["width"] <= 390, path
            charts = page.locator(".chart")
            assert path == "/" or await charts.count(), path
            beyond = await charts.evaluate_all(
                """charts => charts.flatMap(chart => {
                    const edge = chart.getBoundingClientRect().right;
                    const parts = [...chart.querySelectorAll("*")];
                    return parts.filter(part => part.getBoundingClientRect().right > edge).map(String);
                })"""
            )
            assert beyond == [], path


async def test_top_stories_appear_without_a_reload(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Ten of them; the one that is close to an event is in the list above and on the wall under that name."""
    async with opened(browser, client.make_url("/")) as page:
        await expect(page.locator("#more-top-stories")).to_be_hidden()
        stories = [event(f"t{n}", f"Story {n}", timeline=((EVENT_MS, 20 - n),)) for n in range(11)]
        service.fake_events.stories = [
            TopStory(story, EVENT_MS, is_event=False, needed=16 if n > 8 else 0)
            for n, story in enumerate(stories)
        ]
        await expect(page.locator("#top-stories > li")).to_have_count(10)
        await expect(page.locator("#building-up > li")).to_contain_text(["Story 9"])
        for count in ("20 items", "11 of 16"):  # a story stores no articles that it could list
            assert await page.get_by_role("link", name=count).count() == 0
        await expect(page.locator("#more-building-up")).to_be_visible()
        assert await accessibility_violations(page) == []
        await page.goto(str(client.make_url("/?kiosk=1")))
        await expect(page.get_by_text("Building up, 11 of 16")).to_have_count(1)


async def test_right_to_left_headlines(browser: Browser, client: Client) -> None:
    """Arabic and Hebrew headlines run from right to left, the page does not."""
    await post_articles(client, 5)
    async with opened(browser, client.make_url("/")) as page:
        directions = await page.eval_on_selector_all(
            ".latest .headline", "nodes => nodes.map(n => [n.lang, getComputedStyle(n).direction])"
        )

    assert dict(directions) == {"en": "ltr", "zh": "ltr", "ar": "rtl", "de": "ltr", "he": "rtl"}


async def test_new_entries_do_not_move_what_is_in_view(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """While an older verdict is in view, newer ones are added above: it keeps its position."""
    await post_articles(client)
    async with opened(browser, client.make_url("/"), viewport={"width": 900, "height": 600}) as page:
        await page.evaluate("() => { document.querySelectorAll('#verdicts li')[20].scrollIntoView(); }")
        entry = page.locator("#verdicts li", has_text="(9)").first
        key = await entry.get_attribute("data-key")
        before = await top_of(page, key)
        await page.evaluate("key => { document.querySelector(`[data-key='${key}']`).mark = 'same'; }", key)

        service.fake_events.stored = events()
        late = {"id": "late", "title": "A late headline", "text": "Brand new."}
        await client.post("/v1/articles", json=late)
        await page.get_by_text("A late headline").wait_for()
        after = await top_of(page, key)

        assert abs(after - before) <= 1
        await expect(page.locator("#events-new > li")).to_have_count(4)
        await expect(page.locator("#new-events")).to_contain_text("4 new events: ")
        # An unchanged entry is the same node as before, so selection and focus survive.
        assert await page.evaluate("key => document.querySelector(`[data-key='${key}']`).mark", key) == "same"


async def top_of(page: Page, key: str | None) -> float:
    """Vertical position of a row."""
    box = await page.locator(f"[data-key='{key}']").bounding_box()
    assert box is not None
    return box["y"]


async def test_an_event_changes_in_place(browser: Browser, client: Client, service: FakeService) -> None:
    """Growth and status of an event are updated in its own row; the focus stays."""
    service.fake_events.stored = events()
    async with opened(browser, client.make_url("/")) as page:
        await page.locator("[data-key=ee2] [data-menu=not-news-menu]").focus()
        service.fake_events.stored = [
            replace(service.fake_events.stored[1], size=99),
            service.fake_events.stored[0],
        ]
        await page.get_by_text("99").wait_for()

        await expect(page.locator("#events > li")).to_have_count(2)
        focused = "[document.activeElement.dataset.menu, document.activeElement.dataset.event]"
        assert await page.evaluate(focused) == ["not-news-menu", "e2"]


async def test_an_unreachable_service_is_reported(browser: Browser, client: Client) -> None:
    """The page keeps the last known state with a message, which disappears when the service is back."""
    await post_articles(client, 3)
    context = await browser.new_context()
    page = await context.new_page()
    await page.clock.install(time=NOW_S)
    await page.goto(str(client.make_url("/")))
    await page.route("**/*", lambda route: route.abort())
    state = page.locator("#connection-state")
    await pass_time_until(page, lambda text: "cannot be reached" in text)
    await expect(state).to_be_visible()
    await expect(page.locator("#verdicts li")).to_have_count(3)

    await page.unroute("**/*")
    await pass_time_until(page, lambda text: text == "")
    assert await state.is_hidden()
    await context.close()


async def pass_time_until(page: Page, is_expected: Callable[[str], bool]) -> None:
    """Advance the page's clock until the connection state is as expected."""
    for _ in range(50):
        await page.clock.run_for(5_500)
        if is_expected(await page.locator("#connection-state").text_content() or ""):
            return
    raise AssertionError("the connection state did not change")


async def test_keyboard_navigation(browser: Browser, client: Client, service: FakeService) -> None:
    """The first tab stop skips the navigation; events and actions can be reached."""
    await post_articles(client, 2)
    service.fake_events.stored = events()
    async with opened(browser, client.make_url("/")) as page:
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "Skip to content"
        await page.keyboard.press("Enter")
        reached: set[str] = set()
        for _ in range(12):
            await page.keyboard.press("Tab")
            reached.add(
                await page.evaluate("document.activeElement.dataset.menu || document.activeElement.tagName")
            )

    assert {"SUMMARY", "A", "status-menu", "not-news-menu"} <= reached


async def test_unknown_urls_and_events_are_error_pages(browser: Browser, client: Client) -> None:
    """A browser gets a page with links instead of JSON."""
    context = await browser.new_context()
    page = await context.new_page()
    for path in ("/nowhere", "/events/none"):
        response = await page.goto(str(client.make_url(path)))
        assert response is not None and response.status == 404
        await expect(page.get_by_text("Back to the events")).to_be_visible()
        assert await accessibility_violations(page) == []
    await context.close()
