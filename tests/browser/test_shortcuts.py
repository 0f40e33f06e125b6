"""Keyboard shortcuts, undo, density, pause and kiosk mode of the pages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Browser, Page, expect

from aggregator.events.event import EditorAction, Event
from tests.browser.pages import accessibility_violations, opened, overflow_px
from tests.support.factories import EVENT_MS, event
from tests.support.fake_service import Client, FakeService

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def stories() -> list[Event]:
    """Three open events, in order of urgency."""
    return [event(f"e{n}", f"Story number {n}", ("a",) * 9, timeline=((EVENT_MS, 9 - n),)) for n in range(3)]


async def focused(page: Page) -> str:
    """Text of the focused element."""
    text: str = await page.evaluate("document.activeElement.textContent")
    return text


async def set_actor(page: Page) -> None:
    await page.evaluate("localStorage.setItem('aggregator.actor', 'Ann')")


async def test_events_are_handled_without_a_mouse(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """j, k, a, m, z, o: select, mark as seen, mute, undo, open; the name is asked for once."""
    service.fake_events.stored = stories()
    async with opened(browser, client.make_url("/")) as page:
        for key, expected in (("j", "Story number 0"), ("j", "Story number 1"), ("k", "Story number 0")):
            await page.keyboard.press(key)
            assert await focused(page) == expected

        await page.keyboard.press("a")
        await page.get_by_role("textbox", name="Your name").fill("Ann?")  # no shortcut while typing
        await page.keyboard.press("Enter")
        await page.get_by_text("Marked as seen for everyone; it is under Handled now.").wait_for()
        await page.locator("[data-key=ee0] .seen", has_text="Ann?").wait_for()
        await page.keyboard.press("z")
        await page.get_by_text("Undone.").wait_for()
        await page.locator("[data-key=ee0] .seen").wait_for(state="detached")

        await page.keyboard.press("s")
        await page.get_by_role("dialog", name="Status").wait_for()
        await page.keyboard.press("Escape")
        await page.keyboard.press("j")
        muted = (await focused(page))[-1]
        await page.keyboard.press("m")
        await page.get_by_role("dialog", name="Not news").wait_for()
        await page.keyboard.press("j")  # no shortcut while a menu is open
        await page.keyboard.press("Enter")
        await page.get_by_text("Story muted for 7 days.").wait_for()
        await page.locator(f"#events-handled [data-key=ee{muted}]").wait_for(state="attached")
        assert (await focused(page)).startswith("Story number")
        await page.get_by_role("button", name="Undo").press("Enter")
        await page.locator(f"#events [data-key=ee{muted}]").wait_for()
        assert await accessibility_violations(page) == []

        await page.locator("[data-key=ee2] a").focus()
        await page.keyboard.press("o")
        await page.wait_for_url("**/events/e2")
        await page.keyboard.press("a")
        await page.locator(".facts", has_text="Seen by Ann?").wait_for()


async def test_help_lists_the_shortcuts_and_turns_them_off(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """The dialog closes with Escape; without shortcuts its button still opens it (WCAG 2.1.4)."""
    service.fake_events.stored = stories()
    async with opened(browser, client.make_url("/")) as page:
        await page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
        shown = await dialog.locator("kbd").all_inner_texts()
        assert {"j", "k", "o", "a", "w", "i", "r", "m", "n", "s", "x", "z", "?"} <= {*shown}
        assert "u" not in shown
        assert await accessibility_violations(page) == []
        await dialog.get_by_label("Single-key shortcuts").uncheck()
        await page.keyboard.press("Escape")
        await dialog.wait_for(state="hidden")

        await page.keyboard.press("j")
        assert not (await focused(page)).startswith("Story number")
        await page.get_by_role("button", name="Help and keyboard shortcuts").click()
        await dialog.get_by_label("Single-key shortcuts").check()
        await dialog.get_by_role("button", name="Close").click()
        await page.keyboard.press("Control+j")
        assert not (await focused(page)).startswith("Story number")
        await page.keyboard.press("j")
        assert await focused(page) == "Story number 0"


async def test_the_help_of_a_page_lists_what_works_there(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """A page without events has no keys for them; on the list n says that nothing is new, x merges a row."""
    service.fake_events.stored = stories()
    async with opened(browser, client.make_url("/health")) as page:
        await page.keyboard.press("?")
        shown = await page.locator("#shortcut-list kbd").all_inner_texts()
        assert {"n", "u", "?"} <= set(shown) and not {"a", "w", "i", "s", "m", "x"} & set(shown)
        await page.keyboard.press("Escape")
        await page.keyboard.press("u")
        await page.wait_for_url("**/")  # until its scripts are loaded
        await page.keyboard.press("j")
        await page.keyboard.press("n")
        await page.get_by_text("No event is new since you looked.").wait_for()
        assert await focused(page) == "Story number 0"
        await page.keyboard.press("x")
        await page.get_by_role("dialog", name="Merge into which event?").wait_for()


@pytest.mark.parametrize(("width", "height_px"), [(1280, 46), (390, 132)])
async def test_compact_rows_are_low_and_remembered(
    browser: Browser, client: Client, service: FakeService, width: int, height_px: int
) -> None:
    """One line on a desk; on a phone, where they are the default, all facts; long headlines are cut."""
    service.fake_events.stored = [*stories(), event("long", "A long headline " * 9, ("a",) * 9)]
    async with opened(browser, client.make_url("/"), viewport={"width": width, "height": 844}) as page:
        if width == 1280:
            await page.get_by_role("button", name="Compact rows").click()
        await page.reload()
        heights = await page.eval_on_selector_all("#events > li", "rows => rows.map(r => r.offsetHeight)")
        assert len(heights) == 4 and max(heights) <= height_px
        await page.locator("[data-key=ee0]").hover()
        for name in ("Status: Story number 0", "Not news: Story number 0"):
            box = await page.get_by_role("button", name=name).bounding_box()
            assert box and min(box["width"], box["height"]) >= 24 and box["x"] + box["width"] <= width
        assert await overflow_px(page) <= 0
        assert await accessibility_violations(page) == []
        await page.get_by_role("button", name="Comfortable rows").click()
        assert await page.locator("[data-key=ee0]").evaluate("row => row.offsetHeight") > max(heights)


async def test_filters_are_chosen_by_clicking_and_removed_as_chips(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """From what is there; each filter in force is a chip in the address."""
    service.fake_events.stored = [
        *stories(),
        event("de", "Hafen gesperrt", ("a",) * 60, languages=("de",)),
    ]
    async with opened(browser, client.make_url("/?sort=size")) as page:
        await page.locator(".filter summary").click()
        await page.get_by_role("link", name="de 1").click()
        await page.wait_for_url(lambda address: address.endswith("/?lang=de&sort=size"))
        await expect(page.locator("#events > li")).to_have_count(1)
        await page.get_by_role("link", name="Remove the filter Language: de").click()
        await page.wait_for_url(lambda address: address.endswith("/?sort=size"))
        await expect(page.locator("#events > li")).to_have_count(4)


async def test_the_latest_articles_pause(browser: Browser, client: Client) -> None:
    """While paused nothing is added to the list; afterwards all of it."""
    await client.post("/v1/articles", json={"id": "a", "title": "First headline", "text": "One."})
    async with opened(browser, client.make_url("/")) as page:
        await page.get_by_role("button", name="Pause").click()
        await client.post("/v1/articles", json={"id": "b", "title": "Second headline", "text": "Two."})
        async with page.expect_response("**/"):
            pass
        await expect(page.locator("#verdicts li")).to_have_count(1)
        await page.get_by_role("button", name="Paused").click()
        await page.get_by_text("Second headline").wait_for()


async def test_the_kiosk_shows_its_age_and_a_lost_connection(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """No controls; a lost connection is stated with the last update, and ends by itself; Escape leaves."""
    service.fake_events.stored = stories()
    context = await browser.new_context(viewport={"width": 1920, "height": 1080})
    page = await context.new_page()
    await page.goto(str(client.make_url("/?kiosk=1")))
    state = page.locator("#kiosk-updated")
    await page.get_by_text("Updated ").wait_for()
    await expect(page.locator("button:visible, a:visible")).to_have_count(3)  # the headlines
    assert await accessibility_violations(page) == []

    await page.route("**/*", lambda route: route.abort())
    await page.get_by_text("Connection lost; last update ").wait_for()
    assert ":" in await state.inner_text()
    await page.unroute("**/*")
    await page.get_by_text("Updated ").wait_for()
    await page.keyboard.press("Escape")
    await page.wait_for_url("**/")
    await page.locator(".bar").wait_for()
    await context.close()


async def test_the_kiosk_shows_each_event_once(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Of twelve, ten at once, new ones first and framed; those that editors are done with are not there."""
    now_ms = service.clock()
    service.fake_events.stored = [
        event(
            f"e{n}",
            f"Story number {n} has a headline as long as those of agencies, with names of places and people",
            ("a",) * 9,
            size=9 * n,
            detected_at_ms=now_ms - (5 if n == 7 else 30 + n) * 60_000,
            timeline=((now_ms, 25 * n),),
        )
        for n in range(1, 13)
    ]
    service.fake_events.stored += [
        event("e20", "Muted", ("a",) * 9, muted="story"),
        event("e21", "Published", ("a",) * 9, work_status="published"),
        event("e22", "The seventh in another language", ("a",) * 9, translation_of="e7"),
    ]
    context = await browser.new_context(viewport={"width": 1920, "height": 1080})
    page = await context.new_page()
    await page.clock.install()
    await page.goto(str(client.make_url("/?kiosk=1")))
    rows = page.locator("#events > li:visible")
    await expect(page.locator("#kiosk-page")).to_have_text("1 of 2")
    first = await rows.evaluate_all("nodes => nodes.map(n => n.dataset.event)")
    assert len(first) == 10 and first[0] == "e7"
    await expect(page.locator("#events > .fresh")).to_have_count(1)
    boxes = [await row.bounding_box() for row in await rows.all()]
    assert all(box and box["y"] + box["height"] <= 1080 for box in boxes)
    figures = await page.locator(".event:visible > .last-hour b").evaluate_all(
        "nodes => nodes.map(n => [n.getBoundingClientRect().right, parseFloat(getComputedStyle(n).fontSize)])"
    )
    assert len({round(right) for right, _ in figures}) == 1  # aligned
    assert min(size for _, size in figures) >= 56  # digits of 25 mm on a screen of 55 inches

    await page.clock.run_for(13_000)
    await expect(page.locator("#kiosk-page")).to_have_text("1 of 2")  # longer, for what is new
    await page.clock.run_for(12_000)
    await expect(page.locator("#kiosk-page")).to_have_text("2 of 2")
    second = await rows.evaluate_all("nodes => nodes.map(n => n.dataset.event)")
    assert sorted(first + second) == sorted(f"e{n}" for n in range(1, 13))
    await expect(page.locator("#kiosk-published")).to_have_text("1 published, not shown")

    service.fake_events.stored.append(event("e30", "Just now", ("a",) * 9, detected_at_ms=now_ms))
    await page.clock.run_for(5_000)
    await expect(page.locator("[data-event=e30].fresh")).to_contain_text("New")

    published = next(e for e in service.fake_events.stored if e.work_status == "published")
    grown = replace(published, needed=2, times=(now_ms,) * 4, detected_at_ms=now_ms - 7_200_000)
    service.fake_events.stored = [grown if e is published else e for e in service.fake_events.stored]
    await page.clock.run_for(5_000)
    await expect(page.locator(f"[data-event={grown.id}].fresh.back")).to_contain_text("4 new items since")
    await expect(page.locator("#kiosk-published")).to_be_empty()
    await context.close()


async def test_the_row_of_what_is_back_holds_its_state(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """The badge, the new toll and the name are whole within the frame; rows below move down."""
    now_ms = service.clock()
    dropped = EditorAction(
        "set_work_status",
        "Annemarie",
        now_ms - 9,
        "e1",
        work_status="dropped",
        tolls=((1, "dead", 11),),
        id=1,
    )
    service.fake_events.stored = [
        event(
            f"e{n}", f"Ferry number {n} capsizes off the southern cape in a storm", ("a",) * 9,
            work_status="dropped", actions=(dropped,), detected_at_ms=now_ms - 7_200_000,
            tolls=((1, "dead", 11), (now_ms, "dead", 29)), times=(now_ms,) * 12,
        )
        for n in range(9)
    ]  # fmt: skip
    async with opened(
        browser, client.make_url("/?kiosk=1"), viewport={"width": 1920, "height": 1080}
    ) as page:
        rows = page.locator("#events > .back:visible")
        await expect(rows.first).to_contain_text(
            "2+ outlets: 11 → 29 dead, 12 new items since Dropped by Annemarie"
        )
        margins = await rows.evaluate_all(
            """rows => rows.map(row => [row, row.querySelector(".kind"), row.querySelector(".by")])
            .map(([row, cell, by]) => [
                cell.getBoundingClientRect().top - row.getBoundingClientRect().top,
                row.getBoundingClientRect().bottom - cell.getBoundingClientRect().bottom,
                by.clientHeight - by.scrollHeight + 2,
                innerHeight - row.getBoundingClientRect().bottom,
            ])"""
        )
        assert min(min(margin) for margin in margins) >= 0, margins
        await expect(page.locator("#kiosk-page")).to_have_text("1 of 2")


async def test_what_one_editor_has_seen_stays_on_the_wall(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Below the others, without a frame, with the name; every headline keeps to its row, in any script."""
    headline = "إغلاق جسر الميناء الشمالي بعد عاصفة ليلية ألحقت أضرارا كبيرة بكابلين اثنين من كابلاته"
    now_ms = service.clock()
    service.fake_events.stored = [
        event("e1", "Seen", ("a",) * 99, acknowledged_by="Ann", detected_at_ms=now_ms),
        event("e2", headline, ("a",) * 9, languages=("ar",), detected_at_ms=now_ms - 7_200_000),
        event("e3", "Dropped", ("a",) * 9, acknowledged_by="Ann", work_status="dropped"),
        event("e4", "Taken", ("a",) * 9, assignee="Ben", detected_at_ms=now_ms - 7_200_000),
    ]
    viewport = {"width": 1280, "height": 800}
    async with opened(browser, client.make_url("/?kiosk=1"), viewport=viewport) as page:
        rows = page.locator("#events > li:visible")
        assert sorted(await rows.evaluate_all("nodes => nodes.map(n => n.dataset.event)")) == [
            "e1",
            "e2",
            "e4",
        ]
        await expect(rows.last).to_contain_text("Seen by Ann")
        await expect(page.locator("#events > .fresh")).to_have_count(0)
        await expect(page.locator("[data-event=e4]")).to_contain_text("On it: Ben")
        for row in await rows.all():
            outer, inner = await row.bounding_box(), await row.locator("h2").bounding_box()
            assert outer and inner
            assert outer["y"] <= inner["y"]
            assert inner["y"] + inner["height"] <= outer["y"] + outer["height"]
        assert await accessibility_violations(page) == []
        assert await overflow_px(page) <= 0


async def test_the_figure_and_who_is_on_it_are_read_from_afar(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Letters of at least 17 mm on a screen of 55 inches; the headline has more than half of the width."""
    now_ms = service.clock()
    service.fake_events.stored = [
        event(
            "e1", "Chemical plant explosion shakes Port Lindow: 12 dead, 90 injured", ("a",) * 9,
            languages=("en",), tolls=((now_ms, "dead", 176), (now_ms, "injured", 1240)), doubtful=("a", "b"),
            assignee="Maximiliane Mustermann-Karlsson",
        ),
    ]  # fmt: skip
    viewport = {"width": 1920, "height": 1080}
    async with opened(browser, client.make_url("/?kiosk=1"), viewport=viewport) as page:
        row = page.locator("[data-event=e1]")
        outer, headline = await row.bounding_box(), await row.locator("h2 a").bounding_box()
        assert outer and headline and headline["width"] > outer["width"] / 2
        await expect(row.locator(".toll")).to_have_text("now 176 dead, 1\u202f240 injured")
        await expect(row.locator(".by")).to_contain_text("On it: Maximiliane Mustermann-Karlsson")
        for name in (".toll", ".by", ".age"):
            part = row.locator(name)
            assert await part.evaluate("part => parseFloat(getComputedStyle(part).fontSize)") >= 25.9, name
            assert await part.evaluate("part => part.scrollHeight <= part.clientHeight || !part.clientHeight")
            box = await part.bounding_box()
            assert box and outer["y"] <= box["y"], name
            assert box["y"] + box["height"] <= outer["y"] + outer["height"], name
