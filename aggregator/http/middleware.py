"""The middleware of every request, and the headers of every response.

A request gets an id, is counted and timed, and what it raises becomes a problem. OPTIONS is answered here.
Pages of other sites may change nothing (CSRF); pages of the origins of the setting ``cors_origins`` may send
GET and HEAD to addresses under /v1/ and read the answers. Cookies are never accepted from them: a page sends
an access key in the Authorization header, or none where none is required.
"""

from __future__ import annotations

import logging
import re
import secrets
import time

from aiohttp import web
from aiohttp.typedefs import Handler

from aggregator.http import auth, errors
from aggregator.http.app_keys import BASE_PATH, METRICS, REQUEST_ID, SERVICE, SHUTTING_DOWN, is_public
from aggregator.index.upkeep.spaces import FOREIGN_INDEX_CHECK
from aggregator.log_limits import current_request_id

ARTICLE_PATHS = ("/v1/articles", "/v1/related", "/v1/explain")
UNMATCHED = "unmatched"
ANY_ORIGIN = "*"
READ_METHODS = ("GET", "HEAD")
ALL_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT")
MAX_AGE_S = 600
access_log = logging.getLogger("aggregator.access")

_REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._-]{1,64}")


@web.middleware
async def process_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Assign a request id (a valid X-Request-Id is kept); record count, duration and access log."""
    id_ = request.headers.get("X-Request-Id", "")
    request[REQUEST_ID] = id_ = id_ if _REQUEST_ID_PATTERN.fullmatch(id_) else secrets.token_hex(8)
    token = current_request_id.set(id_)
    # Labels come from the route table, so clients cannot create series.
    resource = request.match_info.route.resource
    route = resource.canonical if resource is not None else UNMATCHED
    started = time.perf_counter()
    status = errors.CLIENT_CLOSED_REQUEST
    try:
        response = await _answer(request, handler)
        status = response.status
        return response
    except web.HTTPException as redirect:
        status = redirect.status
        raise
    finally:
        seconds = time.perf_counter() - started
        method = request.method if route != UNMATCHED else "any"
        metrics = request.app[METRICS]
        metrics.requests.labels(method, route, str(status)).inc()
        metrics.request_seconds.labels(route).observe(seconds)
        if request.app[SERVICE].settings.access_log:
            _log_access(request, status, seconds)
        current_request_id.reset(token)


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        if request.method not in auth.SAFE_METHODS:
            auth.refuse_other_sites(request)
        elif request.method == "OPTIONS":
            return _options_response(request)
        if request.path.startswith(ARTICLE_PATHS):  # stored ones that are not read would be unknown here
            problem = request.app[SERVICE].edge.readiness.problems.get(FOREIGN_INDEX_CHECK)
            if problem is not None:
                return errors.not_ready_response(problem)
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return errors.error_response(request, error)
    except Exception as error:
        return errors.error_response(request, error)


def _options_response(request: web.Request) -> web.Response:
    """204 with ``Allow``, also for a preflight of an allowed read. Raises UnknownHost, HTTPNotFound."""
    auth.check_host(request)
    if request.path == "*":  # RFC 9110, section 9.3.7: the server as a whole
        return web.Response(status=204, headers={"Allow": ", ".join(ALL_METHODS)})
    error = request.match_info.http_exception
    if not isinstance(error, web.HTTPMethodNotAllowed):
        raise error or web.HTTPNotFound
    headers = {"Allow": errors.allow(error.allowed_methods)}
    wanted = request.headers.get("Access-Control-Request-Method")
    if wanted in READ_METHODS and wanted in error.allowed_methods and _allowed_origin(request) is not None:
        headers["Access-Control-Allow-Methods"] = ", ".join(READ_METHODS)
        headers["Access-Control-Allow-Headers"] = "Authorization, If-None-Match, Last-Event-ID, X-Request-Id"
        headers["Access-Control-Max-Age"] = str(MAX_AGE_S)
    return web.Response(status=204, headers=headers)


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers of every response."""
    headers, settings = response.headers, request.app[SERVICE].settings
    headers.update(errors.SECURITY_HEADERS)
    headers.setdefault("Cache-Control", "no-store")
    if request.method in auth.SAFE_METHODS:
        _add_cors_headers(request, response, settings.cors_origins)
    location = headers.get("Location", "")
    if location.startswith("/"):  # paths inside the service do not have the prefix of a proxy
        headers["Location"] = request.app[BASE_PATH] + location
    if request.app[SHUTTING_DOWN].is_set():
        response.force_close()
        headers["Connection"] = "close"
    if REQUEST_ID in request:
        headers["X-Request-Id"] = request[REQUEST_ID]


def _add_cors_headers(request: web.Request, response: web.StreamResponse, cors_origins: str) -> None:
    """Let pages of the allowed origins read the response."""
    origin, headers = _allowed_origin(request, response.status), response.headers
    if origin != ANY_ORIGIN and cors_origins and request.path.startswith("/v1/"):
        headers["Vary"] = ", ".join(filter(None, (headers.get("Vary"), "Origin")))
    if origin is not None:
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Expose-Headers"] = "ETag, Retry-After, Server-Timing, X-Request-Id"
        headers["Cross-Origin-Resource-Policy"] = "cross-origin"


def _allowed_origin(request: web.Request, status: int = 200) -> str | None:
    """The value of Access-Control-Allow-Origin; None for other origins and for no origin.

    Every page may ask for related articles, with a wrong key too, load the script, and read what is public.
    """
    origin, path = request.headers.get("Origin"), request.rel_url.raw_path
    may_ask = path.endswith("/related") and (request.method == "OPTIONS" or status == 401)
    if may_ask or is_public(request) or path == "/static/related.js":
        return ANY_ORIGIN
    if not origin or not path.startswith("/v1/"):
        return None
    allowed = [each.strip().rstrip("/") for each in request.app[SERVICE].settings.cors_origins.split(",")]
    return ANY_ORIGIN if ANY_ORIGIN in allowed else origin if origin in allowed else None


def _log_access(request: web.Request, status: int, seconds: float) -> None:
    """Log one line for one request, without its query string: it may hold a reader's search terms."""
    path = request.rel_url.raw_path[: errors.MAX_LOGGED_PATH_CHARS]
    ms = round(seconds * 1000, 1)
    fields = {"method": request.method, "path": path, "status": status, "ms": ms, "remote": request.remote}
    access_log.info("%s %s %d %.1f ms", request.method, path, status, ms, extra={"fields": fields})
