"""A server of feeds on loopback: each feed is of one of ``KINDS``, each address of 127.0.0.x a host."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.support.factories import story

ITEMS = 3  # of each feed
HOSTS = 20
KINDS = (
    "rss", "atom", "json", "gzip", "packed", "charset", "broken", "moved", "gone", "missing", "hanging",
    "same_guid", "undated", "cached", "page",
)  # fmt: skip
DATE = "Fri, 27 Nov 2026 10:00:00 +0100"


def rss(items: Sequence[str], encoding: str = "utf-8") -> bytes:
    """An RSS document of these item elements."""
    head = f'<?xml version="1.0" encoding="{encoding}"?><rss version="2.0"><channel><title>News</title>'
    return f"{head}{''.join(items)}</channel></rss>".encode()


def rss_item(guid: str, title: str, body: str, date: str = DATE, link: str = "") -> str:
    """An item element; ``body`` may be markup."""
    dated = f"<pubDate>{date}</pubDate>" if date else ""
    linked = f"<link>{escape(link)}</link>" if link else ""
    return (
        f'<item><guid isPermaLink="false">{guid}</guid><title>{escape(title)}</title>{linked}{dated}'
        f"<description>{escape(body)}</description></item>"
    )


def atom(items: Sequence[tuple[str, str, str]]) -> bytes:
    """An Atom document of (id, title, text)."""
    entries = "".join(
        f"<entry><id>urn:{id_}</id><title>{title}</title><updated>2026-11-27T09:00:00Z</updated>"
        f'<content type="html">&lt;p&gt;{text}&lt;/p&gt;</content></entry>'
        for id_, title, text in items
    )
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>{entries}</feed>'.encode()


def json_feed(items: Sequence[tuple[str, str, str]]) -> bytes:
    """A JSON Feed of (id, title, text)."""
    listed = [
        {"id": id_, "title": title, "content_text": text, "date_published": "2026-11-27T10:00:00+01:00"}
        for id_, title, text in items
    ]
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": listed}).encode()


def opml(addresses: Sequence[str]) -> str:
    """A list with every second address in a folder of a folder."""
    outlines = [f'<outline type="rss" xmlUrl="{escape(address)}"/>' for address in addresses]
    folder = f'<outline text="a"><outline text="b">{"".join(outlines[1::2])}</outline></outline>'
    return f'<opml version="2.0"><body>{"".join(outlines[::2])}{folder}</body></opml>'


@dataclass(slots=True)
class FeedServer:
    """Feeds ``/KIND/NUMBER``; ``version`` changes the texts of all.

    ``requests``: number of requests by path and status. ``parallel``: the most requests at one time by host.
    """

    port: int = 0
    version: int = 0
    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    parallel: Counter[str] = field(default_factory=Counter)
    _open: Counter[str] = field(default_factory=Counter)

    def address(self, number: int) -> str:
        """Address of a feed, whose kind depends on its number."""
        host = f"127.0.0.{2 + number % HOSTS}"
        return f"http://{host}:{self.port}/{KINDS[number % len(KINDS)]}/{number}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        host = request.host.partition(":")[0]
        self._open[host] += 1
        self.parallel[host] = max(self.parallel[host], self._open[host])
        try:
            for _ in range(20):  # other requests arrive
                await asyncio.sleep(0)
            kind, _, number = request.path.strip("/").partition("/")
            response = await self._answer(kind, int(number), request)
        finally:
            self._open[host] -= 1
        self.requests[request.path, response.status] += 1
        return response

    async def _answer(self, kind: str, number: int, request: web.Request) -> web.Response:
        if kind == "hanging":
            await asyncio.Event().wait()
        statuses = {"gone": 410, "missing": 404}
        if kind in statuses:
            return web.Response(status=statuses[kind], text="no feed")
        if kind == "moved":
            return web.Response(status=301, headers={"Location": f"/rss/{number}"})
        tag = f'"{self.version}"'
        if kind == "cached" and request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers={"ETag": tag})
        headers = {"ETag": tag, "Content-Type": "application/xml"}
        if kind == "gzip":
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=self._document(kind, number), headers=headers)

    def _document(self, kind: str, number: int) -> bytes:
        texts = [story(1000 * self.version + ITEMS * number + at, 8) for at in range(ITEMS)]
        items = [
            (f"{self.version}-{number}-{at}", f"Café {text[:40]}", text) for at, text in enumerate(texts)
        ]
        if kind == "atom":
            return atom(items)
        if kind == "json":
            return json_feed(items)
        if kind == "page":
            return b'<html><link rel="alternate" type="application/rss+xml" href="/rss/0"><p>Hello</html>'
        guid = "1" if kind == "same_guid" else ""
        date = "" if kind == "undated" else DATE
        document = rss([rss_item(guid or id_, title, f"<p>{text}</p>", date) for id_, title, text in items])
        if kind == "charset":
            return document.decode().encode("latin-1")
        if kind == "broken":
            return document[: len(document) * 4 // 5]
        return gzip.compress(document) if kind in ("gzip", "packed") else document


@asynccontextmanager
async def feed_server() -> AsyncIterator[FeedServer]:
    """A running server."""
    feeds = FeedServer()
    app = web.Application()
    app.router.add_get("/{path:.*}", feeds.answer)
    async with TestServer(app, host="0.0.0.0") as server:
        feeds.port = server.port or 0
        yield feeds
