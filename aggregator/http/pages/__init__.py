"""The pages for people: rendered here, kept fresh by small scripts of ours, nothing fetched from elsewhere.

``front`` is the list of events, ``report`` one of them, ``lookup`` the verdict on whatever is pasted,
``compare`` two articles side by side, ``health`` the service itself. ``cards`` and ``charts`` say what is
drawn; the templates write it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

import jinja2
from aiohttp import web

from aggregator.http.app_keys import PAGES, caller_name
from aggregator.http.pages import filters

MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".woff2": "font/woff2",
}
# A font changes with its name only; what we write ourselves is asked for again each time, and mostly 304.
IMMUTABLE_SUFFIXES = (".woff2",)


class Pages:
    """Templates and assets, read once at start: a page never waits for a disk."""

    def __init__(self) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.PackageLoader("aggregator.http.pages", "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= filters.FILTERS
        assets = resources.files("aggregator.http.pages").joinpath("static").iterdir()
        self.assets = {asset.name: asset.read_bytes() for asset in assets if asset.is_file()}

    def render(self, template: str, **values: Any) -> bytes:
        """One page as UTF-8."""
        return self._environment.get_template(template).render(**values).encode("utf-8", "replace")


def html_response(request: web.Request, template: str, **values: Any) -> web.Response:
    """A rendered page; 304 while it is what the caller has."""
    return conditional_response(
        request, request.app[PAGES].render(template, who=caller_name(request), **values), "text/html"
    )


def conditional_response(
    request: web.Request, body: bytes, media_type: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    """``body`` under a tag of its content; 304 while the caller has it."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = {"Cache-Control": "no-cache", **(headers or {}), "ETag": tag}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    charset = None if media_type.startswith("font/") else "utf-8"
    return web.Response(body=body, content_type=media_type, charset=charset, headers=headers)


async def static(request: web.Request, query: None) -> web.StreamResponse:
    """An asset of the pages."""
    name = request.match_info["name"]
    asset = request.app[PAGES].assets.get(name)
    if asset is None:
        raise web.HTTPNotFound
    ending = "." + name.rpartition(".")[2]
    headers = {"Cache-Control": "public, max-age=31536000"} if ending in IMMUTABLE_SUFFIXES else None
    return conditional_response(request, asset, MEDIA_TYPES[ending], headers)
