"""Documentation page of the HTTP API, rendered from the OpenAPI document."""

from __future__ import annotations

from aiohttp import web

from aggregator.contract.problems import ERROR_STATUSES, PROBLEM_TITLES
from aggregator.http.app_keys import OPENAPI_DOCUMENT
from aggregator.http.pages import html_response


async def docs(request: web.Request, query: None) -> web.StreamResponse:
    """All operations, schemas and error codes."""
    codes = [(code, status.value, PROBLEM_TITLES[code]) for _, status, code in ERROR_STATUSES]
    return html_response(
        request,
        "docs.html",
        page="docs",
        api=request.app[OPENAPI_DOCUMENT],
        codes=codes,
    )
