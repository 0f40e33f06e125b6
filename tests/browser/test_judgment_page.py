"""The page for judging duplicate pairs: layout, keyboard, kept and downloaded judgments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import DuplicatePair, judge_pair
from aggregator_lab.evaluation.judgments import read_judgments, render_page
from tests.browser.pages import accessibility_violations, opened, overflow_px
from tests.support.factories import edited, story

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LONG_WORD = "Donaudampfschifffahrtsgesellschaftskapitänsvereinigungsvorsitzender" * 2


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A page of four pairs: long, short, Chinese, and with a word wider than a phone."""
    texts = [
        ("en", "Harbour bridge closed after storm", story(1, 200)),
        ("en", "", "The ferry left at noon with 12 cars."),
        ("zh", "港口大桥因暴风雨受损关闭", "工程师连夜检查缆索，预计周五恢复通行。" * 4),
        ("de", LONG_WORD, f"{LONG_WORD} {story(2, 20)}"),
    ]
    pairs = []
    for i, (lang, title, text) in enumerate(texts):
        a = Article(f"a{i}", title, text, source=LONG_WORD, published_at_ms=1_780_000_000_000)
        b = Article(f"b{i}", f"{title} again", edited(text, 1, 1), source="b.example", published_at_ms=0)
        pairs.append(DuplicatePair(a, b, lang, judge_pair(a, b, lang)))
    file = tmp_path / "page.html"
    file.write_text(render_page(pairs, 9, "policy verified"), encoding="utf-8")
    return file.as_uri()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
async def test_it_fits_and_is_accessible(browser: Browser, url: str, width: int, scheme: str) -> None:
    viewport = {"width": width, "height": 900}
    async with opened(browser, url, viewport=viewport, color_scheme=scheme) as page:
        await page.get_by_role("radio", name="Wrong").first.check()
        assert await overflow_px(page) == 0
        assert await accessibility_violations(page) == []


async def test_judgments_are_kept_downloaded_and_cleared(browser: Browser, url: str, tmp_path: Path) -> None:
    """Keys judge pair after pair; a reload keeps the judgments; the file is read by the command."""
    async with opened(browser, url, viewport={"width": 1280, "height": 900}) as page:
        for key in "rwj":
            await page.keyboard.press(key)
        await page.keyboard.press("u")
        assert await judged(page) == ["right", "wrong", None, "unsure"]
        await page.reload()
        assert await judged(page) == ["right", "wrong", None, "unsure"]
        await expect(page.locator("#counts")).to_have_text("1 right, 1 wrong, 1 unsure", use_inner_text=True)
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Download judgments").click()
        file = tmp_path / "judgments.json"
        await (await download.value).save_as(file)
        saved = read_judgments(str(file))
        assert [(item.a, item.b, item.verdict) for item in saved] == [
            ("a0", "b0", "right"),
            ("a1", "b1", "wrong"),
            ("a3", "b3", "unsure"),
        ]
        page.on("dialog", lambda dialog: dialog.accept())
        await page.get_by_role("button", name="Clear all").click()
        assert await judged(page) == [None] * 4
        await page.reload()
        assert await judged(page) == [None] * 4
        assert json.loads(await page.evaluate("JSON.stringify(judgments())")) == []


async def test_long_texts_are_clipped_until_opened(browser: Browser, url: str) -> None:
    async with opened(browser, url, viewport={"width": 1280, "height": 900}) as page:
        more = page.locator(".more").first
        await expect(page.locator(".more:visible")).to_have_count(2)
        text = page.locator(".pair .text").first
        clipped_px = await text.evaluate("e => e.clientHeight")
        await more.click()
        assert await text.evaluate("e => e.clientHeight") > clipped_px
        await page.keyboard.press("o")
        assert await text.evaluate("e => e.clientHeight") == clipped_px


async def judged(page: Page) -> list[str | None]:
    """The judgment of each pair, as marked and as checked."""
    marked: list[str | None] = await page.evaluate(
        "[...document.querySelectorAll('.pair')].map((p) => p.dataset.judgment || null)"
    )
    checked = await page.evaluate(
        "[...document.querySelectorAll('.pair')].map((p) => p.querySelector('input:checked')?.value || null)"
    )
    assert checked == marked
    return marked
