"""The OpenAPI document for people."""

from __future__ import annotations

from aiohttp import web

from aggregator.http.app_keys import OPENAPI
from aggregator.http.pages import shown


async def docs(request: web.Request, query: None) -> web.StreamResponse:
    """Every call, every schema, every error code."""
    from aggregator.http.middleware.errors import STATUS, TITLES

    codes = [(code, status.value, TITLES[code]) for _, status, code in STATUS]
    return shown(
        request, "docs.html", page="docs", api=request.app[OPENAPI], codes=codes, stream="", position=""
    )
