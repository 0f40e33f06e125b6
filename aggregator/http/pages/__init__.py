"""The pages for people: rendered here, refreshed by a small script, nothing fetched from elsewhere."""

from __future__ import annotations

import hashlib
from datetime import datetime
from importlib import resources
from typing import Any

import jinja2
from aiohttp import web
from markupsafe import Markup, escape

from aggregator.domain import StreamItem
from aggregator.http import event_views
from aggregator.http.keys import OPENAPI, SERVICE
from aggregator.http.views import when

MAX_SHOWN_EVENTS = 40
MAX_SHOWN_VERDICTS = 60
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Pages:
    """Templates and assets, read once at start: a page never waits for a disk."""

    def __init__(self) -> None:
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("aggregator.http.pages", "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {"web_link": web_link, "stamp": stamp, "iso": iso, "code": code}
        assets = resources.files("aggregator.http.pages").joinpath("static").iterdir()
        self.assets = {asset.name: asset.read_bytes() for asset in assets if asset.is_file()}

    def render(self, template: str, **values: Any) -> bytes:
        """One page as UTF-8."""
        return self._templates.get_template(template).render(**values).encode("utf-8", "replace")


PAGES = web.AppKey("pages", Pages)


def web_link(url: str) -> str:
    """``url`` when a browser may follow it, else "": whatever got into the store, no script gets out."""
    return url if url.lower().startswith(("http://", "https://")) else ""


def iso(at: datetime) -> str:
    """For the datetime attribute of <time>."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def stamp(at: datetime) -> str:
    """For people whose browser runs no script; the script shows their own zone instead."""
    return at.strftime("%d %b %Y, %H:%M UTC")


def code(text: str) -> Markup:
    """``so`` marked words as <code>, all else escaped."""
    parts = text.split("``")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(parts)
    )


async def front(request: web.Request, query: None) -> web.StreamResponse:
    """Events and recent verdicts; 304 while nothing has changed."""
    service = request.app[SERVICE]
    events = await service.events.list(status=None, since_ms=None, limit=MAX_SHOWN_EVENTS)
    recent = await service.index.recent(MAX_SHOWN_VERDICTS)
    page = request.app[PAGES].render(
        "front.html",
        events=[event_views.event(event) for event in events],
        verdicts=[_verdict(item) for item in recent if item.kind == "article"],
        rule=_rule(request),
        origin=_origin(request),
    )
    return _cached(request, page, "text/html")


async def docs(request: web.Request, query: None) -> web.StreamResponse:
    """The OpenAPI document for people."""
    from aggregator.http.errors import STATUS, TITLES

    codes = [(code, status.value, TITLES[code]) for _, status, code in STATUS]
    page = request.app[PAGES].render("docs.html", api=request.app[OPENAPI], codes=codes)
    return _cached(request, page, "text/html")


async def static(request: web.Request, query: None) -> web.StreamResponse:
    """An asset of the pages."""
    name = request.match_info["name"]
    asset = request.app[PAGES].assets.get(name)
    if asset is None:
        raise web.HTTPNotFound
    return _cached(request, asset, MEDIA_TYPES["." + name.rpartition(".")[2]])


def _cached(request: web.Request, body: bytes, media_type: str) -> web.Response:
    tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type=media_type, charset="utf-8", headers=headers)


def _verdict(item: StreamItem) -> dict[str, Any]:
    return {
        "key": f"v{item.number}",
        "id": item.id,
        "title": item.title or item.id,
        "url": item.url,
        "source": item.source,
        "lang": item.lang,
        "verdict": item.verdict,
        "exact": item.exact,
        "arrived_at": when(item.arrived_ms),
    }


def _rule(request: web.Request) -> str:
    settings = request.app[SERVICE].settings
    return f"more than {settings.burst_items} similar items within {settings.burst_window_hours:g} hours"


def _origin(request: web.Request) -> str:
    """How the reader's browser reached us, for the example command."""
    return f"{request.scheme}://{request.host}"
