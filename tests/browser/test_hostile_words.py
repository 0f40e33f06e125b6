"""Hostile titles, URLs, sources and names are text on every page and never run.

The content security policy is switched off here: escaping alone must suffice.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Browser, Dialog, Page
from yarl import URL

from tests.support.factories import event
from tests.support.fake_service import Client, FakeService

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

RUN = "window.ran=1;alert(1)"
WORDS = (
    f'"><script>{RUN}</script><img src=x onerror="{RUN}">',
    f"'><svg onload='{RUN}'></svg>",
    f'" autofocus onfocus="{RUN}" x="',
    f"</title></style></textarea></pre><script>{RUN}</script>",
    f"javascript:{RUN}",
    "{{ 7*7 }}<!-- ${7*7} \u202e\u2028\x0b",
)
# Browsers ignore some characters before and within the scheme.
PREFIXES = (
    "javascript:", "JaVaScRiPt:", "\x01javascript:", "java\tscript:", "data:text/html,<script>", "vbscript:",
    "//evil.example/",
)  # fmt: skip
URLS = tuple(prefix + RUN for prefix in PREFIXES)
LINKS = """[...document.querySelectorAll('a[href], area[href], form[action], [src], button[formaction]')]
    .map(e => new URL(e.getAttribute('href') || e.getAttribute('action') || e.getAttribute('src')
                      || e.getAttribute('formaction'), location.href).href)"""
HANDLERS = """[...document.querySelectorAll('*')]
    .filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).map(e => e.outerHTML)"""


async def test_hostile_text_neither_runs_nor_links(
    browser: Browser, client: Client, service: FakeService
) -> None:
    """Every page, also after a live update: no script, dialog or handler, and only http links."""
    await store_hostile_text(client, service)
    paths = ["/", "/events/e0", "/search", "/days/2026-09-21", "/compare", "/health", "/docs", "/nowhere"]
    for word in WORDS[:3]:
        for path, name in (
            ("/search", "q"),
            ("/search", "time_zone"),
            ("/sign-in", "next"),
            ("/", "term"),
            ("/", "source"),
            ("/compare", "a"),
        ):
            paths.append(str(URL.build(path=path, query={name: word})))
        paths += [f"/{part}{URL.build(path='/' + word).raw_path}" for part in ("events", "nowhere")]
    paths += [f"/search?q=a{n}" for n in range(len(URLS))] + ["/compare?a=a0&b=a1", "/compare?a=a2&b=a3"]

    context = await browser.new_context(bypass_csp=True)
    page = await context.new_page()
    dialogs: list[str] = []

    async def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        await dialog.dismiss()

    page.on("dialog", dismiss)
    for path in paths:
        await page.goto(str(client.make_url("/").join(URL(path, encoded=True))))
        await assert_harmless(page, client.host, path)
    await page.goto(str(client.make_url("/")))
    late = {"id": "late", "title": f"A late headline {WORDS[0]}", "source": WORDS[1], "text": "Brand new."}
    await client.post("/v1/articles", json=late)
    await page.get_by_text("A late headline").wait_for()
    await assert_harmless(page, client.host, "updated")
    await context.close()

    assert dialogs == []


async def store_hostile_text(client: Client, service: FakeService) -> None:
    """Store articles and events with hostile text in all fields, also values that the API rejects."""
    for n, url in enumerate(URLS):
        word = WORDS[n % len(WORDS)]
        body = {
            "id": f"a{n}",
            "title": word,
            "source": word[:300],
            "text": f"{word} {n}",
            "url": "https://a.example/",
        }
        assert (await client.post("/v1/articles", json=body)).status in (201, 200)
        object.__setattr__(service.stored[f"a{n}"].record, "url", url)
    service.fake_events.stored = [
        event(
            f"e{n}", word, [f"a{n}" for n in range(len(URLS))], size=20, reason=word, sources=(word, "b"),
            acknowledged_by=word,
        )
        for n, word in enumerate(WORDS)
    ]  # fmt: skip
    service.fake_events.stored.append(replace(service.fake_events.stored[0], id="e9", muted="routine"))


async def assert_harmless(page: Page, host: str | None, path: str) -> None:
    """Nothing ran, and no link or form would run anything."""
    assert await page.evaluate("window.ran") is None, path
    assert await page.evaluate(HANDLERS) == [], path
    links = [URL(link) for link in await page.evaluate(LINKS)]
    assert {link.scheme for link in links} <= {"http", "https"}, (path, links)
    assert {link.host for link in links} <= {host, "a.example", "www.rfc-editor.org", "spec.openapis.org"}, (
        path
    )
