"""Middleware for every request: request id, metrics, access log, security headers and CSRF protection."""

from __future__ import annotations

import logging
import re
import secrets
import time

from aiohttp import web
from aiohttp.typedefs import Handler
from yarl import URL

from aggregator import tracing
from aggregator.errors import CrossSiteRequest
from aggregator.http.app_keys import BASE_PATH, METRICS, REQUEST_ID, SERVICE, SHUTTING_DOWN
from aggregator.http.deprecation import DEPRECATION_HEADERS
from aggregator.http.middleware import cors, rate_limit
from aggregator.http.middleware.errors import CLIENT_CLOSED_REQUEST
from aggregator.http.request_id import CURRENT_REQUEST_ID

MAX_LOGGED_PATH_CHARS = 500
UNMATCHED = "unmatched"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": browsers would then send "Origin: null" with forms of this site, as with those of
    # others.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "aggregator",
}
access_log = logging.getLogger("aggregator.access")

_REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._-]{1,64}")


@web.middleware
async def track_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Assign a request id (a valid X-Request-Id is kept); record count, duration and access log."""
    client_id = request.headers.get("X-Request-Id", "")
    request[REQUEST_ID] = client_id if _REQUEST_ID_PATTERN.fullmatch(client_id) else secrets.token_hex(8)
    token = CURRENT_REQUEST_ID.set(request[REQUEST_ID])
    started = time.perf_counter()
    status = CLIENT_CLOSED_REQUEST
    span = tracing.request_span(request.method, _route_of(request), request.headers)
    try:
        with span:
            response = await handler(request)
            status = response.status
            tracing.set_status(status, request[REQUEST_ID])
            return response
    except web.HTTPException as error:
        status = error.status
        raise
    finally:
        seconds = time.perf_counter() - started
        _record_metrics(request, status, seconds)
        if request.app[SERVICE].settings.access_log:
            _log_access(request, status, seconds)
        CURRENT_REQUEST_ID.reset(token)


@web.middleware
async def csrf_protect(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse changes that a browser sends for a page of another site. Programs send neither header."""
    if request.method not in SAFE_METHODS:
        fetch_site = request.headers.get("Sec-Fetch-Site", "none")
        origin = request.headers.get("Origin")
        is_cross_origin = origin is not None and not _is_own_origin(origin, request)
        if fetch_site not in ("none", "same-origin") or is_cross_origin:
            raise CrossSiteRequest(
                "Origin: pages of other sites must not send this request (behind a proxy, set public_url)."
            )
    return await handler(request)


def _is_own_origin(origin: str, request: web.Request) -> bool:
    """Whether the origin is this service: it matches the Host header, or public_url behind a proxy."""
    public_url = request.app[SERVICE].settings.public_url
    matches_host = origin.partition("://")[2] == request.headers.get("Host")
    return matches_host or (bool(public_url) and origin == str(URL(public_url).origin()))


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers of every response."""
    for name, value in SECURITY_HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")
    cors.add_headers(request, response.headers)
    rate_limit.add_headers(request, response.headers)
    response.headers.update(request.get(DEPRECATION_HEADERS, {}))
    location = response.headers.get("Location", "")
    if location.startswith("/"):  # paths inside the service do not have the prefix of a proxy
        response.headers["Location"] = request.app[BASE_PATH] + location
    if request.app[SHUTTING_DOWN].is_set():
        response.force_close()
        response.headers["Connection"] = "close"
    request_id = request.get(REQUEST_ID)
    if request_id is not None:
        response.headers["X-Request-Id"] = request_id


def _route_of(request: web.Request) -> str:
    """The route's pattern, or UNMATCHED: its number of values is bounded."""
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else UNMATCHED


def _record_metrics(request: web.Request, status: int, seconds: float) -> None:
    """Count and time a request. Labels come from the route table, so clients cannot create series."""
    route = _route_of(request)
    method = request.method if route != UNMATCHED else "any"
    metrics = request.app[METRICS]
    metrics.requests.labels(method, route, str(status)).inc()
    metrics.request_seconds.labels(route).observe(seconds)


def _log_access(request: web.Request, status: int, seconds: float) -> None:
    """Log one line for one request, without its query string: it may hold a reader's search terms."""
    path = request.rel_url.raw_path[:MAX_LOGGED_PATH_CHARS]
    ms = round(seconds * 1000, 1)
    fields = {"method": request.method, "path": path, "status": status, "ms": ms, "remote": request.remote}
    access_log.info("%s %s %d %.1f ms", request.method, path, status, ms, extra={"fields": fields})
