"""What strangers send as titles, addresses, sources and names is words on every page, and runs nowhere.

The content security policy is switched off here: escaping has to do by itself.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from yarl import URL

from tests.support.factories import event

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
# A browser may ignore what stands before the scheme, or within it.
ADDRESSES = tuple(f"{before}{RUN}" for before in ("javascript:", "JaVaScRiPt:", "\x01javascript:", "java\tscript:",
                                                  "data:text/html,<script>", "vbscript:", "//evil.example/"))  # fmt: skip
FOREIGN_LINKS = """[...document.querySelectorAll('a[href], area[href], form[action], [src], button[formaction]')]
    .map(e => new URL(e.getAttribute('href') || e.getAttribute('action') || e.getAttribute('src')
                      || e.getAttribute('formaction'), location.href).href)"""
HANDLERS = """[...document.querySelectorAll('*')]
    .filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).map(e => e.outerHTML)"""


async def test_no_word_of_a_stranger_runs_or_links(browser, client, service):
    """Every page, also after it has renewed itself: no script, no dialog, no handler, no address but http."""
    await stock(client, service)
    paths = ["/", "/events/e0", "/lookup", "/compare", "/health", "/docs", "/nowhere"]
    for word in WORDS[:3]:
        for path, name in (
            ("/lookup", "q"),
            ("/sign-in", "next"),
            ("/", "term"),
            ("/", "source"),
            ("/compare", "a"),
        ):
            paths.append(str(URL.build(path=path, query={name: word})))
        paths += [f"/{part}{URL.build(path='/' + word).raw_path}" for part in ("events", "nowhere")]
    paths += [f"/lookup?q=a{n}" for n in range(len(ADDRESSES))] + ["/compare?a=a0&b=a1", "/compare?a=a2&b=a3"]

    context = await browser.new_context(bypass_csp=True)
    page = await context.new_page()
    dialogs = []

    async def refuse(dialog):
        dialogs.append(dialog.message)
        await dialog.dismiss()

    page.on("dialog", refuse)
    for path in paths:
        await page.goto(str(client.make_url("/").join(URL(path, encoded=True))))
        await judge(page, client.host, path)
    await page.goto(str(client.make_url("/")))
    late = {"id": "late", "title": f"A late headline {WORDS[0]}", "source": WORDS[1], "text": "Brand new."}
    await client.post("/v1/articles", json=late)
    await page.get_by_text("A late headline").wait_for()
    await judge(page, client.host, "renewed")
    await context.close()

    assert dialogs == []


async def stock(client, service) -> None:
    """Articles and events whose every word is hostile, also such as the interface would not take."""
    for n, address in enumerate(ADDRESSES):
        word = WORDS[n % len(WORDS)]
        body = {
            "id": f"a{n}",
            "title": word,
            "source": word[:300],
            "text": f"{word} {n}",
            "url": "https://a.example/",
        }
        assert (await client.post("/v1/articles", json=body)).status in (201, 200)
        object.__setattr__(service.articles[f"a{n}"].record, "url", address)
    service.events.told = [
        event(
            f"e{n}", word, [f"a{n}" for n in range(len(ADDRESSES))], size=20, reason=word, sources=(word, "b"),
            acknowledged_by=word,
        )
        for n, word in enumerate(WORDS)
    ]  # fmt: skip
    service.events.told.append(replace(service.events.told[0], id="e9", muted="routine"))


async def judge(page, host, path) -> None:
    """Nothing ran, and nothing would when clicked."""
    assert await page.evaluate("window.ran") is None, path
    assert await page.evaluate(HANDLERS) == [], path
    addresses = [URL(found) for found in await page.evaluate(FOREIGN_LINKS)]
    assert {a.scheme for a in addresses} <= {"http", "https"}, (path, addresses)
    assert {a.host for a in addresses} <= {host, "a.example", "www.rfc-editor.org", "spec.openapis.org"}, path
