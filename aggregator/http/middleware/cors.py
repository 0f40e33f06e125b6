"""OPTIONS requests, and cross-origin reads for the origins of the setting ``cors_origins`` (CORS).

Pages of these origins may send GET and HEAD to addresses under /v1/ and read the answers. Cookies are never
accepted from them: a page sends an access key in the Authorization header, or none where none is required.
Changes stay forbidden (``observability.csrf_protect``).
"""

from __future__ import annotations

from functools import lru_cache

from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import CIMultiDict

from aggregator.http import hosts
from aggregator.http.app_keys import SERVICE

ANY_ORIGIN = "*"
READ_METHODS = ("GET", "HEAD")
ALL_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT")
REQUEST_HEADERS = "Authorization, If-None-Match, Last-Event-ID, X-Request-Id"
EXPOSED_HEADERS = (
    "Deprecation, ETag, Link, RateLimit, RateLimit-Policy, Retry-After, Server-Timing, Sunset, X-Request-Id"
)
MAX_AGE_S = 600


@web.middleware
async def answer_options(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer OPTIONS of every address with 204 and ``Allow``; a preflight of an allowed read as well."""
    if request.method != "OPTIONS":
        return await handler(request)
    hosts.check_host(request)
    if request.path == "*":  # RFC 9110, section 9.3.7: the server as a whole
        return web.Response(status=204, headers={"Allow": ", ".join(ALL_METHODS)})
    error = request.match_info.http_exception
    if not isinstance(error, web.HTTPMethodNotAllowed):
        return await handler(request)  # 404
    headers = {"Allow": allow(error.allowed_methods)}
    wanted = request.headers.get("Access-Control-Request-Method")
    if wanted in READ_METHODS and wanted in error.allowed_methods and _allowed_origin(request) is not None:
        headers["Access-Control-Allow-Methods"] = ", ".join(READ_METHODS)
        headers["Access-Control-Allow-Headers"] = REQUEST_HEADERS
        headers["Access-Control-Max-Age"] = str(MAX_AGE_S)
    return web.Response(status=204, headers=headers)


def allow(methods: set[str]) -> str:
    """The Allow header of an address that has these methods."""
    return ", ".join(sorted(methods | {"OPTIONS"}))


def add_headers(request: web.Request, headers: CIMultiDict[str]) -> None:
    """Set the headers that let pages of the allowed origins read the response."""
    allowed = _allowed_origins(request.app[SERVICE].settings.cors_origins)
    if not allowed or request.method not in (*READ_METHODS, "OPTIONS") or not _is_api(request):
        return
    if ANY_ORIGIN not in allowed:
        headers["Vary"] = ", ".join(filter(None, (headers.get("Vary"), "Origin")))
    origin = _allowed_origin(request)
    if origin is not None:
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
        headers["Cross-Origin-Resource-Policy"] = "cross-origin"


def _is_api(request: web.Request) -> bool:
    return request.rel_url.raw_path.startswith("/v1/")


def _allowed_origin(request: web.Request) -> str | None:
    """The value of Access-Control-Allow-Origin; None for other origins and for no origin."""
    origin = request.headers.get("Origin")
    allowed = _allowed_origins(request.app[SERVICE].settings.cors_origins)
    if origin is None or not _is_api(request):
        return None
    if ANY_ORIGIN in allowed:
        return ANY_ORIGIN
    return origin if origin in allowed else None


@lru_cache(maxsize=16)  # called for every response
def _allowed_origins(setting: str) -> frozenset[str]:
    return frozenset(origin.strip().rstrip("/") for origin in setting.split(",")) - {""}
