"""The page of docs/guides/related.md on an invented site, under a content security policy."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, ConsoleMessage, Page, expect

from aggregator.app import Service, open_service
from aggregator.http.routes import ENDPOINTS
from aggregator.settings import Settings
from tests.browser.pages import accessibility_violations
from tests.guides.blocks import parse_blocks
from tests.support.cluster import free_ports
from tests.support.fake_service import Client, serving
from tests.support.nginx import nginx

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ARTICLES = {
    "https://gazette.example/ferry": (
        "Estmark ferry to Sule stops for the winter",
        "Estmark Gazette",
        "The car ferry between Estmark and the island of Sule does not sail again before March. Its "
        "landing place at the pier of Sule is not safe any more, the harbour office of Estmark decided.",
    ),
    "https://post.example/pier": (
        "Storm damages the ferry pier of Sule",
        "Island Post",
        "Divers found cracks in eleven pillars of the pier of Sule where the Estmark ferry lands. Repairs "
        "cost two million crowns, and the island council wants the harbour office to pay for half of them.",
    ),
    "https://radio.example/cars": (
        "Islanders of Sule leave their cars in Estmark",
        "Radio Sule",
        "Without the ferry people of Sule take a small boat to Estmark and park their cars near the harbour. "
        "The school sends its pupils home on Thursdays, as the boat sails in calm weather only.",
    ),
    "javascript:alert(1)": (
        "Pictures of the Sule ferry",
        "Hostile",
        "Old pictures of the ferry of Sule and Estmark are for sale in the museum until the pier opens.",
    ),
}
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "related.md"
PAGE = next(block.text for block in parse_blocks(GUIDE.read_text(encoding="utf-8")) if block.title)
HEAD = '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="page.css">'
STYLE = """body { font: 16px/1.5 sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem }
section ul { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr));
  list-style: none; padding: 0 } .related-about { color: #555; display: block }"""
# Only what the guide asks for.
POLICY = "default-src 'none'; style-src 'self'; script-src {service}; connect-src {service}"


@asynccontextmanager
async def site(service_url: str, key: str) -> AsyncIterator[str]:
    """An invented site on another origin, with a page for each article; its URL."""

    async def page(request: web.Request) -> web.Response:
        id_ = request.query.get("id", "")
        title, _, text = ARTICLES.get(id_, ("Welcome", "", "News."))
        html = PAGE.replace("Marrow weir is opened to boats", title).replace("agg_...", key)
        html = html.replace("weir-1", id_).replace("limit=5", "limit=5&amp;min_score=0.1")
        html = html.replace("http://127.0.0.1:8080", service_url).replace("</h1>", f"</h1><p>{text}</p>")
        html = html.replace("<main>", f"{HEAD}<main>")
        html = html.replace("</section>", f"{request.query.get('inside', '')}</section>")
        policy = {"Content-Security-Policy": POLICY.format(service=service_url)}
        return web.Response(text=html, content_type="text/html", headers=policy)

    async def style(_: web.Request) -> web.Response:
        return web.Response(text=STYLE, content_type="text/css")

    app = web.Application()
    app.router.add_get("/", page)
    app.router.add_get("/page.css", style)
    async with TestServer(app, host="localhost") as server:
        yield str(server.make_url("/"))


@asynccontextmanager
async def newsroom() -> AsyncIterator[tuple[Service, Client, str]]:
    """A service with four articles on one subject, and the key of a page."""
    async with open_service(Settings(store_url="memory")) as service, serving(service) as client:
        _, admin = await service.edge.api_keys.add("Ada", "admin")
        _, key = await service.edge.api_keys.add("page", "related")
        for id_, (title, source, text) in ARTICLES.items():
            body = {"id": id_, "title": title, "source": source, "text": text, "lang": "en"}
            body |= {"published_at": "2026-11-20T08:00:00Z"}
            body |= {"url": id_} if id_.startswith("https") else {}
            headers = {"Authorization": f"Bearer {admin}"}
            answer = await client.post("/v1/articles", json=body, headers=headers)
            assert answer.status in (200, 201), await answer.text()
        yield service, client, key


def messages_of(page: Page) -> list[str]:
    """What the browser complains about from now on, but that the article without a URL is not shown."""
    found: list[str] = []

    def add(message: ConsoleMessage) -> None:
        if "that have no URL" not in message.text:
            found.append(message.text)

    page.on("console", add)
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


@pytest.mark.parametrize("width", [1280, 390])
async def test_a_page_lists_related_articles(browser: Browser, tmp_path: Path, width: int) -> None:
    """A section with a heading and a list of links, all reachable by keyboard, that fits its page."""
    async with newsroom() as (_, client, key), site(str(client.make_url("")).rstrip("/"), key) as url:
        page = await browser.new_page(viewport={"width": width, "height": 800})
        messages = messages_of(page)
        await page.goto(url + "?id=https://gazette.example/ferry")
        region = page.get_by_role("region", name="Related articles")
        await expect(region.get_by_role("heading", level=2)).to_have_text("Related articles")
        links = region.get_by_role("listitem").get_by_role("link")
        assert sorted(await links.all_inner_texts()) == [
            "Islanders of Sule leave their cars in Estmark",
            "Storm damages the ferry pier of Sule",
        ]
        await expect(region.get_by_role("listitem").first).to_contain_text("Nov 20, 2026")
        await page.keyboard.press("Tab")
        await expect(links.first).to_be_focused()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert messages == []
        assert await accessibility_violations(page) == []
        await page.screenshot(path=tmp_path / f"related-{width}.png")
        await page.close()


async def test_a_page_without_related_articles_stays_as_it_is(browser: Browser) -> None:
    """Nothing is shown for a new reader without top stories, and an error is reported to the console."""
    async with newsroom() as (_, client, key), site(str(client.make_url("")).rstrip("/"), key) as url:
        page = await browser.new_page()
        messages = messages_of(page)
        await page.goto(url)
        await page.wait_for_load_state("networkidle")
        await expect(page.locator("section")).to_be_hidden()
        assert messages == []
        await page.goto(url + "?id=unknown")
        async with page.expect_console_message(lambda m: m.text.startswith("related.js: no articles")):
            pass
        await expect(page.locator("section")).to_be_hidden()
        await page.close()


async def test_the_links_of_the_page_stay_without_an_answer(browser: Browser) -> None:
    """With the text around them; a heading or text without a link is not shown."""
    inside = {"<h2>Read on</h2>": False, "Loading": False, '<h2>Read on</h2><a href="/old">Old</a>': True}
    async with newsroom() as (_, client, key), site(str(client.make_url("")).rstrip("/"), key) as url:
        for is_reached in (True, False):
            page = await browser.new_page()
            if not is_reached:
                await page.route("**/v1/**", lambda route: route.abort())
            for content, is_shown in inside.items():
                async with page.expect_console_message(
                    lambda m: m.text.startswith("related.js: no articles")
                ):
                    await page.goto(f"{url}?{urlencode({'id': 'unknown', 'inside': content})}")
                await expect(page.locator("section")).to_be_visible(visible=is_shown)
                assert await page.locator("section").inner_html() == content
            await page.close()


async def test_a_cache_answers_readers_and_the_key_opens_nothing_else(
    browser: Browser, tmp_path: Path
) -> None:
    """Of three readers of one page behind nginx, the service sees the first; 403 on every other route."""
    (port,) = free_ports(1)
    async with newsroom() as (_, client, key):
        server = (
            f"location / {{ proxy_pass {client.make_url('')}; proxy_cache pages; "
            "add_header X-Cache $upstream_cache_status always; }"
        )
        cache = f"proxy_cache_path {tmp_path / 'cache'} keys_zone=pages:1m;"
        with nginx(tmp_path, port, server, cache):
            async with site(f"http://127.0.0.1:{port}", key) as url:
                states = []
                for _ in range(3):
                    context = await browser.new_context()
                    page = await context.new_page()
                    async with page.expect_response(
                        lambda r: (
                            r.url.endswith("/related?limit=5&min_score=0.1") and r.request.method == "GET"
                        )
                    ) as caught:
                        await page.goto(url + "?id=https://gazette.example/ferry")
                    await expect(page.get_by_role("region").get_by_role("link")).to_have_count(2)
                    states.append(await (await caught.value).header_value("x-cache"))
                    await context.close()
        assert states == ["MISS", "HIT", "HIT"]

        headers = {"Authorization": f"Bearer {key}"}
        for endpoint in ENDPOINTS:
            path = re.sub(r"{\w+}", "a", endpoint.path.replace("{date}", "2026-11-20"))
            answer = await client.request(endpoint.method, path, headers=headers, allow_redirects=False)
            if endpoint.permission not in ("nothing", "related"):
                assert answer.status == 403, endpoint.operation_id
