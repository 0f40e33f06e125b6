"""Documentation page of the HTTP API, rendered from the OpenAPI document."""

from __future__ import annotations

from aiohttp import web

from aggregator.contract.problems import ERROR_STATUSES, PROBLEM_TITLES
from aggregator.contract.validation import REASONS
from aggregator.http.app_keys import OPENAPI_DOCUMENT, caller_name
from aggregator.http.conditional import conditional_response
from aggregator.http.pages import PAGES


async def docs(request: web.Request, query: None) -> web.StreamResponse:
    """All operations, schemas and error codes; rendered once, since anybody may ask for it."""
    codes = [(code, status.value, PROBLEM_TITLES[code]) for _, status, code in ERROR_STATUSES]
    body = request.app[PAGES].render_once(
        "docs.html",
        page="docs",
        user=caller_name(request),
        api=request.app[OPENAPI_DOCUMENT],
        codes=codes,
        reasons=REASONS,
    )
    return conditional_response(request, body, "text/html")
