"""Problem responses (RFC 9457) for errors, and throttled log lines for what was refused.

A flood of attempts must neither go unnoticed nor fill the log: at most one line per LOG_INTERVAL_S, with the
number of suppressed ones. What a client sent is never repeated, since it may hold a key.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from urllib.parse import quote

from aiohttp import HttpVersion11, http_exceptions, web

from aggregator import errors
from aggregator.auth.api_keys import audit_log
from aggregator.contract.problems import make_problem, to_problem
from aggregator.contract.responses import encode
from aggregator.http.app_keys import BASE_PATH, METRICS, REQUEST_ID, caller_id, caller_name
from aggregator.http.pages import PAGES
from aggregator.log_limits import LogThrottle
from aggregator_client.wire import Problem

PROBLEM_JSON = "application/problem+json"
METHODS_WITH_BODY = ("POST", "PUT")
CLIENT_CLOSED_REQUEST = 499  # nginx's status for a client that disconnected
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
# Errors for the audit log. A missing key is not among them: it only means that the user has not signed in.
AUDITED_ERRORS = (errors.InvalidApiKey, errors.Forbidden, errors.CrossSiteRequest, errors.UnknownHost)
RETRIABLE_ERRORS = (errors.StoreUnavailable, errors.RateLimited, errors.TooManyStreams)
LOG_INTERVAL_S = 10.0
MAX_LOGGED_PATH_CHARS = 500
# The first matching class decides, so a subclass precedes its base class.
REJECTION_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (http_exceptions.LineTooLong, "line too long"),
    (http_exceptions.BadHttpMethod, "not an HTTP method, perhaps TLS"),
    (http_exceptions.BadStatusLine, "invalid request line"),
    (http_exceptions.InvalidHeader, "malformed header"),
    (http_exceptions.TransferEncodingError, "invalid transfer encoding"),
    (http_exceptions.ContentLengthError, "body does not match its Content-Length"),
)
OTHER_REASON = "not HTTP/1.1"

log = logging.getLogger(__name__)


def error_response(request: web.Request, error: Exception) -> web.Response:
    """The response for what a handler raised."""
    if isinstance(error, errors.AggregatorError):
        return _application_error_response(request, error)
    if isinstance(error, web.HTTPException):
        return _http_exception_response(request, error)
    if isinstance(error, ConnectionError):  # the client disconnected: nobody reads a response
        return web.Response(status=CLIENT_CLOSED_REQUEST, reason="Client Closed Request")
    request.app[METRICS].unexpected_errors.inc()
    log.error(
        "request %s failed: %s %s",
        request.get(REQUEST_ID), request.method, request.rel_url.raw_path, exc_info=error,
    )  # fmt: skip
    return problem_response(to_problem(error), request=request)


def not_ready_response(reason: str) -> web.Response:
    """503 with the reason why requests cannot be served."""
    return problem_response(
        make_problem(HTTPStatus.SERVICE_UNAVAILABLE, "not_ready", reason), {"Retry-After": "1"}
    )


def malformed_request_response(status: int, error: BaseException | None) -> web.Response:
    """The response to bytes that form no request, as a header that is too long; closes the connection."""
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        response = problem_response(to_problem(Exception()))
    else:
        detail = (
            "The request line or a header is too long; the limit is 8190 bytes."
            if isinstance(error, http_exceptions.LineTooLong)
            else "Not a valid HTTP/1.1 request."
        )
        response = problem_response(make_problem(HTTPStatus(status), "http", detail))
    response.headers.update(SECURITY_HEADERS)
    response.force_close()
    return response


def problem_response(
    problem: Problem, headers: Mapping[str, str] | None = None, request: web.Request | None = None
) -> web.Response:
    """The response for a problem: JSON, or an HTML page for a browser outside /v1."""
    if request is not None:
        base = request.app[BASE_PATH]
        problem.type, problem.instance = base + problem.type, base + request.rel_url.raw_path
        problem.request_id = request.get(REQUEST_ID)
        if _wants_html(request):
            page = request.app[PAGES].render(
                "problem.html", page="problem", problem=problem, user=caller_name(request)
            )
            return web.Response(
                body=page, status=problem.status, content_type="text/html", charset="utf-8", headers=headers
            )
    body, status = encode(problem) + b"\n", problem.status
    return web.Response(body=body, status=status, content_type=PROBLEM_JSON, headers=headers, charset=None)


def _wants_html(request: web.Request) -> bool:
    path = request.rel_url.raw_path
    return "text/html" in request.headers.get("Accept", "") and not path.startswith(("/v1/", "/static/"))


async def handle_expect_header(request: web.Request) -> web.StreamResponse | None:
    """Refuse all expectations but ``100-continue``, which is answered only when the body is to be read."""
    expectation = request.headers.get("Expect", "")
    if request.version < HttpVersion11 or expectation.lower() == "100-continue":
        return None
    detail = f"Expect: only 100-continue is supported, not {expectation[:40]!r}."
    return problem_response(make_problem(HTTPStatus.EXPECTATION_FAILED, "http", detail), request=request)


def _application_error_response(request: web.Request, error: errors.AggregatorError) -> web.Response:
    headers, problem = {}, to_problem(error, "body" if request.method in METHODS_WITH_BODY else "parameter")
    if isinstance(error, AUDITED_ERRORS):
        request.app[REFUSAL_LOG].request(request, problem.code)
    if isinstance(error, errors.Unauthenticated):
        if request.method == "GET" and _wants_html(request):
            return web.Response(
                status=303, headers={"Location": "/sign-in?next=" + quote(request.raw_path, safe="")}
            )
        headers["WWW-Authenticate"] = 'Bearer realm="aggregator"'
    if isinstance(error, RETRIABLE_ERRORS):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.StoreUnavailable):
        request.app[REFUSAL_LOG].unavailable(request, error)
    if isinstance(error, errors.BodyTimeout):
        headers["Connection"] = "close"
    return problem_response(problem, headers, request)


def _http_exception_response(request: web.Request, error: web.HTTPException) -> web.Response:
    path = request.rel_url.raw_path[:200]
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = allow(error.allowed_methods)
        detail = f"{path} allows {allowed}, not {request.method[:20]}."
        problem = make_problem(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        return problem_response(problem, {"Allow": allowed}, request)
    if error.status == HTTPStatus.NOT_FOUND:
        detail = f"There is nothing at {path}; /docs lists all addresses."
        return problem_response(make_problem(HTTPStatus.NOT_FOUND, "no_route", detail), request=request)
    return problem_response(
        make_problem(HTTPStatus(error.status), "http", f"{error.reason}."), request=request
    )


def allow(methods: set[str]) -> str:
    """The Allow header of an address that has these methods."""
    return ", ".join(sorted(methods | {"OPTIONS"}))


class RefusalLog:
    """Throttled log of what was refused, one instance per process. ``clock``: monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._throttle = LogThrottle(LOG_INTERVAL_S, clock)

    def request(self, request: web.Request, code: str) -> None:
        """Audit log: an invalid or insufficient key, or a request from another site, with the code."""
        path, key = request.rel_url.raw_path[:MAX_LOGGED_PATH_CHARS], caller_id(request) or "-"
        origin = f"from={request.remote} key={key} request={request.get(REQUEST_ID)}"
        self._warn("request", f"refused {request.method} {path} code={code} {origin}", audit_log)

    def unavailable(self, request: web.Request, error: errors.StoreUnavailable) -> None:
        """A request that the store did not serve: each reason has its own line."""
        self._warn(str(error), f"request {request.get(REQUEST_ID)}: {str(error).rstrip('.')}")

    def surplus(self, peer: str | None, max_connections: int) -> None:
        """A connection beyond the limit."""
        sentence = f"refused a connection from {peer}: {max_connections} are open, none idle"
        self._warn("surplus", sentence, peer=peer, status=503)

    def malformed(self, peer: str | None, status: int, error: BaseException | None) -> None:
        """A connection whose bytes never became a request that a handler sees."""
        reason = next((text for kind, text in REJECTION_REASONS if isinstance(error, kind)), OTHER_REASON)
        sentence = f"rejected malformed request from {peer} with status {status}: {reason}"
        self._warn("malformed", sentence, peer=peer, status=status, reason=reason)

    def _warn(self, cause: str, sentence: str, logger: logging.Logger = log, **fields: object) -> None:
        if (more := self._throttle.admit(cause)) is not None:
            extra = {"fields": fields | {"more": more}}
            logger.warning("%s; %d more since the last such line", sentence, more, extra=extra)


REFUSAL_LOG = web.AppKey("refusal_log", RefusalLog)
