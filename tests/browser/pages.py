"""Opens pages and checks them: console messages, requests to other hosts, accessibility, width."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]  # has no stubs
from playwright.async_api import Browser, Page
from yarl import URL

from tests.support.hang_limit import HANG_LIMIT_S

SEVERE_IMPACTS = ("serious", "critical")


@asynccontextmanager
async def opened(browser: Browser, url: URL | str, **options: Any) -> AsyncIterator[Page]:
    """A page at ``url``; a console message or a request to another host is a failure at the end."""
    context = await browser.new_context(**options)
    page = await context.new_page()
    page.set_default_timeout(HANG_LIMIT_S * 1000)
    problems = record_problems(page, URL(str(url)).host)
    await page.goto(str(url))
    yield page
    await context.close()
    assert problems == [], problems


def record_problems(page: Page, host: str | None) -> list[str]:
    """A list that receives console messages (also CSP violations), errors, and requests to other hosts."""
    problems: list[str] = []
    page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.on("request", lambda r: problems.append(r.url) if URL(r.url).host != host else None)
    return problems


async def accessibility_violations(page: Page, *parts: str, targets: bool = False) -> list[str]:
    """Severe findings of axe-core, with their elements; ``parts``: selectors of what to examine.

    ``targets``: also targets of less than 24 px without the space of such a one.
    """
    rules = {"rules": {"target-size": {"enabled": targets}}, "resultTypes": ["violations"]}
    results = await Axe().run(
        page, options=rules, context={"include": [[part] for part in parts]} if parts else None
    )
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in results.response["violations"]
        if violation["impact"] in SEVERE_IMPACTS
        for node in violation["nodes"]
    ]


async def overflow_px(page: Page) -> int:
    """Width of the page beyond that of its window."""
    return int(await page.evaluate("document.documentElement.scrollWidth - innerWidth"))
