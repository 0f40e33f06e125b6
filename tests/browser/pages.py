"""Opening pages and judging them: console, foreign requests, accessibility."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

from axe_playwright_python.async_playwright import Axe
from yarl import URL

GRAVE = ("serious", "critical")


@asynccontextmanager
async def opened(browser: Any, url: URL | str, **context: Any):
    """A page at ``url``; whatever the console complains of, or is asked of another host, fails at the end."""
    made = await browser.new_context(**context)
    page = await made.new_page()
    page.set_default_timeout(10_000)
    problems = watched(page, URL(str(url)).host)
    await page.goto(str(url))
    yield page
    await made.close()
    assert problems == []


def watched(page: Any, host: str | None) -> list[str]:
    """A list that gathers what goes wrong on a page: messages (CSP violations too), errors, foreign requests."""
    problems: list[str] = []
    page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.on("request", lambda r: problems.append(r.url) if URL(r.url).host != host else None)
    return problems


async def barriers(page: Any) -> list[str]:
    """Grave findings of axe-core, each with where."""
    found = await Axe().run(page)
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found.response["violations"]
        if violation["impact"] in GRAVE
        for node in violation["nodes"]
    ]


async def hangs_over(page: Any) -> int:
    """By how many pixels the page is wider than its window."""
    return int(await page.evaluate("document.documentElement.scrollWidth - innerWidth"))
