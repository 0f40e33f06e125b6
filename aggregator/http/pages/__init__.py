"""HTML pages: Jinja templates, kept current by scripts; nothing is loaded from other hosts.

A module for each of them; ``cards`` computes what the templates draw, ``filters`` formats values.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping
from datetime import datetime
from email.utils import format_datetime
from importlib import resources
from typing import Any

import jinja2
from aiohttp import web

from aggregator.events.broadcast import NO_CHANGES
from aggregator.http.app_keys import SERVICE, caller_id, caller_name
from aggregator.http.auth import base_url
from aggregator.http.pages import filters

MEDIA_TYPES = {
    ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain",
    ".woff2": "font/woff2",
}  # fmt: skip
# Seconds that caches keep a font, which never changes under its name, and the script of pages of other sites;
# other scripts and styles are revalidated each time (mostly 304).
LIFETIMES_S = {".woff2": 31_536_000, "related.js": 3600}

MAX_VIEWS = 64  # of the render cache
# Without a change of an event, rates, deleted articles and names of desks are shown at most this much later.
MAX_CACHED_MS = 5000
Renderer = Callable[[bytes], Coroutine[Any, Any, bytes]]
_LOCAL_ADDRESS = re.compile(r'( (?:href|src|action|formaction|data-stream)=")/(?!/)')


class Pages:
    """Templates and static files, read once at start. ``base_path``: below which a proxy serves the pages."""

    def __init__(self, base_path: str = "") -> None:
        self._base_path = base_path
        self._environment = jinja2.Environment(
            loader=jinja2.PackageLoader("aggregator.http.pages", "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= filters.FILTERS
        self._environment.globals |= dict.fromkeys(("stream_url", "stream_position", "feed"), "")
        self._environment.globals |= {"base_path": base_path}
        assets = resources.files("aggregator.http.pages").joinpath("static").iterdir()
        self.assets = {asset.name: asset.read_bytes() for asset in assets if asset.is_file()}
        self.assets |= _counted_icons(self.assets["icon.svg"])
        self.cache = RenderCache()

    def render(self, template: str, **values: Any) -> bytes:
        """A page as UTF-8. ``page``: its name, for navigation and styles; ``user``: name of the key, or "".

        ``stream_url``: event stream that refreshes it from ``stream_position`` on; "": the page is static.
        """
        html = self._environment.get_template(template).render(**values)
        if self._base_path:
            # In text and attributes a quotation mark is escaped, so this finds addresses of the service only.
            html = _LOCAL_ADDRESS.sub(rf"\g<1>{self._base_path}/", html)
        return html.encode("utf-8", "replace")


def _counted_icons(icon: bytes) -> dict[str, bytes]:
    """The icon with a number of new events: icon-1.svg to icon-9.svg, and icon-9plus.svg."""
    texts = {f"icon-{n}.svg": str(n) for n in range(1, 10)} | {"icon-9plus.svg": "9+"}
    badge = (
        '<circle cx="15.5" cy="15.5" r="8.5" fill="#fff"/><text x="15.5" y="19.6" font-family="sans-serif" '
        'font-size="{size}" font-weight="700" text-anchor="middle" fill="#b3261e">{text}</text></svg>'
    )
    return {
        name: icon.replace(b"</svg>", badge.format(text=text, size=12 if len(text) < 2 else 10).encode())
        for name, text in texts.items()
    }


PAGES = web.AppKey("pages", Pages)


def html_response(request: web.Request, template: str, **values: Any) -> web.Response:
    """A rendered page (see ``Pages.render``) of ``now_ms``, or 304 if the client has it already."""
    return conditional_response(request, rendered(request, template, **values), "text/html")


def rendered(request: web.Request, template: str, **values: Any) -> bytes:
    """A page for the caller (see ``Pages.render``), of ``now_ms`` unless another time is given."""
    defaults = {"user": caller_name(request), "now_ms": request.app[SERVICE].clock()}
    return request.app[PAGES].render(template, **defaults | values)


async def shared_response(request: web.Request, render: Renderer, *version: Hashable) -> web.Response:
    """The page that ``render`` makes once for equal requests of a user (see ``shared_body``), or 304."""
    body = await shared_body(request, render, *version, viewer=caller_id(request))
    return conditional_response(request, body, "text/html")


async def shared_body(request: web.Request, render: Renderer, *version: Hashable, viewer: str = "") -> bytes:
    """What ``render`` makes of the position of the last change of an event: once for all equal requests.

    It is made again after a change, also of desks if it names one, with another ``version``, and when it is
    MAX_CACHED_MS old. ``viewer``: the user that it is for; "": all who may send the request.
    """
    service = request.app[SERVICE]
    # Read before the events, so that a stream from there repeats changes made in between.
    position = await service.events.broadcaster.latest_position()
    if position == NO_CHANGES:  # there is no version to cache by
        return await render(position)
    desks = await service.events.desks.values() if "watch" in request.query else ()
    view = request.path_qs, base_url(request), viewer
    version = position, service.clock() // MAX_CACHED_MS, *desks, *version
    return await request.app[PAGES].cache.get(view, version, lambda: render(position))


def conditional_response(
    request: web.Request,
    body: bytes,
    media_type: str,
    *,
    charset: str | None = "utf-8",
    headers: Mapping[str, str] | None = None,
    modified_at: datetime | None = None,
) -> web.Response:
    """``body`` with an ETag of its content, or 304 without a body if the client has it already.

    headers      added to, or replacing, "Cache-Control: private, no-cache"
    modified_at  UTC, whole seconds; also sent as Last-Modified and compared where the client sends no ETag
    """
    tag = hashlib.sha256(body).hexdigest()[:32]
    sent = {"Cache-Control": "private, no-cache", **(headers or {}), "ETag": f'"{tag}"'}
    if modified_at is not None:
        sent["Last-Modified"] = format_datetime(modified_at, usegmt=True)
    if _is_not_modified(request, tag, modified_at):
        return web.Response(status=304, headers=sent)
    return web.Response(body=body, content_type=media_type, charset=charset, headers=sent)


def _is_not_modified(request: web.Request, tag: str, modified_at: datetime | None) -> bool:
    """RFC 9110, section 13.2.2: If-Modified-Since counts only without If-None-Match."""
    if request.if_none_match is not None:
        return any(known.value in (tag, "*") for known in request.if_none_match)
    since = request.if_modified_since
    return since is not None and modified_at is not None and modified_at <= since


async def static(request: web.Request, name: str) -> web.Response:
    """Static files of the pages."""
    asset = request.app[PAGES].assets.get(name)
    if asset is None:
        raise web.HTTPNotFound
    suffix = "." + name.rpartition(".")[2]
    media_type = MEDIA_TYPES[suffix]
    charset = None if media_type.startswith("font/") else "utf-8"
    lifetime_s = LIFETIMES_S.get(suffix) or LIFETIMES_S.get(name, 0)
    headers = {"Cache-Control": f"public, max-age={lifetime_s}"} if lifetime_s else None
    return conditional_response(request, asset, media_type, charset=charset, headers=headers)


class RenderCache:
    """The last page of each of up to MAX_VIEWS views; the least recently used ones are dropped."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, tuple[Hashable, asyncio.Task[bytes]]] = OrderedDict()

    async def get(
        self, view: Hashable, version: Hashable, render: Callable[[], Coroutine[Any, Any, bytes]]
    ) -> bytes:
        """The page of a view, rendered unless the stored one has this version. Raises as ``render`` does."""
        known, task = self._pages.get(view, (None, None))
        if task is None or known != version or (task.done() and (task.cancelled() or task.exception())):
            task = asyncio.create_task(render())
            self._pages[view] = version, task
        self._pages.move_to_end(view)
        while len(self._pages) > MAX_VIEWS:
            self._pages.popitem(last=False)
        return await asyncio.shield(task)
