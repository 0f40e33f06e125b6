"""The editors' page over the fake service: it refreshes itself, keeps the reader's place, fits a phone."""

from dataclasses import replace

import pytest

from tests.browser.pages import barriers, hangs_over, opened, watched
from tests.support.factories import event
from tests.support.fake_service import START_MS

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


async def fill(client, count: int = 30) -> None:
    """Articles of our own in several scripts; every fifth a copy."""
    for n in range(count):
        lang, title, source = HEADLINES[n % len(HEADLINES)]
        text = "The same wire story." if n % 5 == 4 else f"Report number {n} with its own words."
        body = {
            "id": f"a{n}",
            "title": f"{title} ({n})",
            "text": text,
            "lang": lang,
            "source": source,
            "url": f"https://{source}/{n}",
        }
        await client.post("/v1/articles", json=body)


def events() -> list:
    """One of each state, two of them in other scripts, one muted."""
    names = [source for _, _, source in HEADLINES]
    some = [f"a{n}" for n in range(12)]
    return [
        event(
            "e1", HEADLINES[0][1], some, size=23, sources=(*names, *(f"paper{n}.example" for n in range(7)))
        ),
        event("e2", HEADLINES[1][1], some, size=17, sources=tuple(names[:3]), languages=("zh",)),
        event("e3", HEADLINES[2][1], some, status="emerging", sources=(names[2],), languages=("ar",)),
        event("e4", "Ferry service resumes after fog", some, size=40, status="fading", acknowledged_by="Ann"),
        event("e5", "Fund prices of the day", some, muted="routine"),
        event("e6", "Strike at the harbour is over", some, status="closed"),
    ]


PATHS = ("/", "/events/e1", "/lookup", "/lookup?q=a4", "/compare", "/health", "/docs")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_pages_fit_and_load_nothing_foreign(browser, client, service, width, scheme):
    """No sideways scrolling, no console message, no request to anywhere else, empty and full."""
    context = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    async with opened(browser, client.make_url("/"), **context) as page:
        assert await page.locator("pre").count() == 1
        await fill(client)
        service.events.told = events()
        for path in PATHS:
            await page.goto(str(client.make_url(path)))
            assert await hangs_over(page) <= 0, path


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
async def test_pages_have_no_barriers(browser, client, service, width, scheme):
    """No grave finding of axe on any page, empty and full."""
    context = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    async with opened(browser, client.make_url("/"), **context) as page:
        assert await barriers(page) == []
        await fill(client, 10)
        service.events.told = events()
        for path in PATHS:
            await page.goto(str(client.make_url(path)))
            assert await barriers(page) == [], path


async def test_events_stand_in_their_places(browser, client, service):
    """Open ones first, muted and closed ones folded away."""
    service.events.told = events()
    async with opened(browser, client.make_url("/")) as page:
        listed = await page.eval_on_selector_all("#events > li", "nodes => nodes.map(n => n.dataset.key)")
        assert sorted(listed) == ["ee1", "ee2", "ee3", "ee4"]
        assert await page.locator("#events-muted > li").count() == 1
        assert not await page.locator("#events-closed").is_visible()


async def test_right_to_left_headlines(browser, client):
    """Arabic and Hebrew headlines run from the right, the page does not."""
    await fill(client, 5)
    async with opened(browser, client.make_url("/")) as page:
        directions = await page.eval_on_selector_all(
            ".ticker .headline", "nodes => nodes.map(n => [n.lang, getComputedStyle(n).direction])"
        )

    assert dict(directions) == {"en": "ltr", "zh": "ltr", "ar": "rtl", "de": "ltr", "he": "rtl"}


async def test_new_entries_appear_without_moving_the_reader(browser, client, service):
    """While the reader looks at an older verdict, newer ones come in above: it stays where it is."""
    await fill(client)
    async with opened(browser, client.make_url("/"), viewport={"width": 900, "height": 600}) as page:
        await page.evaluate("() => { document.querySelectorAll('#verdicts li')[20].scrollIntoView(); }")
        entry = page.locator("#verdicts li", has_text="(9)").first
        key = await entry.get_attribute("data-key")
        before = (await page.locator(f"[data-key='{key}']").bounding_box())["y"]
        await page.evaluate("key => { document.querySelector(`[data-key='${key}']`).mark = 'same'; }", key)

        service.events.told = events()
        late = {"id": "late", "title": "A late headline", "text": "Brand new."}
        await client.post("/v1/articles", json=late)
        await page.get_by_text("A late headline").wait_for(timeout=10_000)
        after = (await page.locator(f"[data-key='{key}']").bounding_box())["y"]

        assert abs(after - before) <= 1
        assert await page.locator("#events > li").count() == 4
        assert await page.locator("#above").inner_text() == "4 new events above"
        # An entry that did not change is the same node as before: selection and focus survive.
        assert await page.evaluate("key => document.querySelector(`[data-key='${key}']`).mark", key) == "same"


async def test_an_event_changes_in_place(browser, client, service):
    """Growth and state of an event show up in its own row; who had the focus keeps it."""
    service.events.told = events()
    async with opened(browser, client.make_url("/")) as page:
        await page.locator("[data-key=ee2] [data-action=mute]").focus()
        service.events.told = [replace(service.events.told[1], size=99), service.events.told[0]]
        await page.get_by_text("99").wait_for(timeout=10_000)

        assert await page.locator("#events > li").count() == 2
        focused = "[document.activeElement.dataset.action, document.activeElement.dataset.event]"
        assert await page.evaluate(focused) == ["mute", "e2"]


async def test_it_says_when_the_service_is_away_and_recovers(browser, client):
    """The last known state stays, with a sentence; it goes away when the service is back."""
    await fill(client, 3)
    context = await browser.new_context()
    page = await context.new_page()
    await page.clock.install(time=NOW_S)
    await page.goto(str(client.make_url("/")))
    await page.route("**/*", lambda route: route.abort())
    state = page.locator("#link-state")
    await pass_time_until(page, lambda text: "cannot be reached" in text)
    assert await state.is_visible()
    assert await page.locator("#verdicts li").count() == 3

    await page.unroute("**/*")
    await pass_time_until(page, lambda text: text == "")
    assert await state.is_hidden()
    await context.close()


async def pass_time_until(page, told) -> None:
    """Let refreshes come due until the state line reads as it should."""
    for _ in range(50):
        await page.clock.run_for(5_500)
        if told(await page.locator("#link-state").text_content()):
            return
    raise AssertionError("the state line never changed")


async def test_keyboard(browser, client, service):
    """The first stop of the tab key leads past the navigation; every event and action can be reached."""
    await fill(client, 2)
    service.events.told = events()
    async with opened(browser, client.make_url("/")) as page:
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "Skip to content"
        await page.keyboard.press("Enter")
        reached = set()
        for _ in range(12):
            await page.keyboard.press("Tab")
            reached.add(
                await page.evaluate("document.activeElement.dataset.action || document.activeElement.tagName")
            )

    assert {"SUMMARY", "A", "acknowledge", "mute"} <= reached


async def test_what_came_since_the_last_visit_is_marked(browser, client, service):
    """A first visit marks nothing; a visit hours later marks what broke meanwhile."""
    service.events.told = events()
    context = await browser.new_context()
    page = await context.new_page()
    problems = watched(page, client.host)
    await page.clock.set_fixed_time(NOW_S - 4 * 3600)
    await page.goto(str(client.make_url("/")))
    assert await page.locator(".fresh:visible").count() == 4

    await page.clock.set_fixed_time(NOW_S)
    service.events.told[0] = replace(service.events.told[0], detected_at_ms=START_MS - 5 * 3_600_000)
    await page.goto(str(client.make_url("/")))
    assert await page.locator(".fresh:visible").count() == 3
    assert problems == []
    await context.close()


async def test_an_unknown_address_and_a_missing_event_are_pages(browser, client):
    """People get sentences and a way on, not JSON."""
    context = await browser.new_context()
    page = await context.new_page()
    for path in ("/nowhere", "/events/none"):
        response = await page.goto(str(client.make_url(path)))
        assert response.status == 404
        assert await page.get_by_text("To the events").is_visible()
        assert await barriers(page) == []
    await context.close()
