"""The editors' page in a real browser: it refreshes itself, keeps the reader's place, fits a phone."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from fake_service import START_MS
from newsroom import event
from yarl import URL

pytestmark = pytest.mark.browser

NOW_S = START_MS / 1000 + 420
SCREENSHOTS = os.environ.get("AGGREGATOR_SCREENSHOTS")
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
    """One of each state, two of them in other scripts."""
    names = [source for _, _, source in HEADLINES]
    return [
        event("e1", HEADLINES[0][1], ["a"] * 23, sources=(*names, *(f"paper{n}.example" for n in range(7)))),
        event(
            "e2",
            HEADLINES[1][1],
            ["a"] * 17,
            sources=tuple(names[:3]),
            reason="17 items within 4 hours, where 1.1 are usual.",
        ),
        event("e3", HEADLINES[2][1], ["a"] * 12, status="emerging", sources=(names[2],)),
        event("e4", "Ferry service resumes after fog", ["a"] * 40, status="fading"),
    ]


async def opened(browser, client, *, clock=False, **context):
    """A page at the front, with its console errors and failed or foreign requests collected."""
    made = await browser.new_context(**context)
    page = await made.new_page()
    page.problems = []
    page.on("console", lambda m: page.problems.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: page.problems.append(str(e)))
    page.on(
        "request",
        lambda r: page.problems.append(r.url) if URL(r.url).host != client.host else None,
    )
    if clock:
        await page.clock.install(time=NOW_S)
    else:
        await page.clock.set_fixed_time(NOW_S)
    await page.goto(str(client.make_url("/")))
    return page


async def shot(page, name: str) -> None:
    """A screenshot, when somebody asked for them by AGGREGATOR_SCREENSHOTS."""
    if SCREENSHOTS:
        await page.screenshot(path=str(Path(SCREENSHOTS) / f"{name}.png"), full_page=True)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_fits_and_loads_nothing_foreign(browser, client, service, width, scheme):
    """No sideways scrolling, no console message, no request to anywhere else, empty and full."""
    page = await opened(browser, client, viewport={"width": width, "height": 800}, color_scheme=scheme)
    await shot(page, f"empty-{width}-{scheme}")
    assert await page.locator("pre").count() == 1
    await fill(client)
    service.events.told = events()
    await page.reload()

    assert await page.locator("article.event").count() == 4
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.problems == []
    await shot(page, f"front-{width}-{scheme}")
    await page.goto(str(client.make_url("/docs")))
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.problems == []
    await shot(page, f"docs-{width}-{scheme}")


async def test_right_to_left_headlines(browser, client):
    """Arabic and Hebrew headlines run from the right, the page does not."""
    await fill(client, 5)
    page = await opened(browser, client)
    directions = await page.eval_on_selector_all(
        ".headline", "nodes => nodes.map(n => [n.lang, getComputedStyle(n).direction])"
    )

    assert dict(directions) == {"en": "ltr", "zh": "ltr", "ar": "rtl", "de": "ltr", "he": "rtl"}


async def test_new_entries_appear_without_moving_the_reader(browser, client, service):
    """While the reader looks at an older verdict, newer ones come in above: it stays where it is."""
    await fill(client)
    page = await opened(browser, client, viewport={"width": 900, "height": 600})
    await page.evaluate("() => { document.querySelectorAll('#verdicts li')[20].scrollIntoView(); }")
    entry = page.locator("#verdicts li", has_text="(9)").first
    key = await entry.get_attribute("data-key")
    before = (await page.locator(f"[data-key='{key}']").bounding_box())["y"]
    await page.evaluate(
        "key => { document.querySelector(`[data-key='${key}']`).dataset.mark = 'same'; }", key
    )

    service.events.told = events()
    await client.post("/v1/articles", json={"id": "late", "title": "A late headline", "text": "Brand new."})
    await page.get_by_text("A late headline").wait_for(timeout=10_000)
    after = (await page.locator(f"[data-key='{key}']").bounding_box())["y"]

    assert abs(after - before) <= 1
    assert await page.locator("article.event").count() == 4
    # An entry that did not change is the same node as before: selection and focus survive.
    assert await page.locator(f"[data-key='{key}']").get_attribute("data-mark") == "same"
    assert page.problems == []


async def test_an_event_changes_in_place(browser, client, service):
    """Growth and state of an event show up in its own card; a closed list empties."""
    service.events.told = events()
    page = await opened(browser, client)
    service.events.told = [replace(service.events.told[1], size=99), service.events.told[0]]
    await page.get_by_text("99").wait_for(timeout=10_000)

    keys = await page.eval_on_selector_all("article.event", "nodes => nodes.map(n => n.dataset.key)")
    assert keys == ["ee2", "ee1"]


async def test_it_says_when_the_service_is_away_and_recovers(browser, client, service):
    """The last known state stays, with a sentence; it goes away when the service is back."""
    await fill(client, 3)
    page = await opened(browser, client, clock=True)
    await page.route("**/*", lambda route: route.abort())
    state = page.locator("#link-state")
    await pass_time_until(page, lambda text: "cannot be reached" in text)
    assert await state.is_visible()
    assert await page.locator("#verdicts li").count() == 3

    await page.unroute("**/*")
    await pass_time_until(page, lambda text: text == "")
    assert await state.is_hidden()


async def pass_time_until(page, told) -> None:
    """Let refreshes come due until the state line reads as it should."""
    for _ in range(50):
        await page.clock.run_for(3_500)
        if told(await page.locator("#link-state").text_content()):
            return
    raise AssertionError("the state line never changed")


async def test_keyboard(browser, client):
    """The first stop of the tab key leads past the navigation; every headline can be reached."""
    await fill(client, 2)
    page = await opened(browser, client)
    await page.keyboard.press("Tab")

    assert await page.evaluate("document.activeElement.textContent") == "Skip to content"
    for _ in range(5):
        await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.closest('li') !== null")
