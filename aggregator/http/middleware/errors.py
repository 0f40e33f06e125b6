"""Error middleware: turns every exception into an RFC 9457 problem response."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.typedefs import Handler

from aggregator import errors
from aggregator.contract.problems import make_problem, to_problem
from aggregator.contract.responses import encode
from aggregator.http.app_keys import (
    BASE_PATH,
    CALLER_KEY,
    METRICS,
    REJECTED_LOG,
    REQUEST_ID,
    SERVICE,
    caller_name,
)
from aggregator.http.middleware.cors import allow
from aggregator.http.pages import PAGES
from aggregator.index import unread_index
from aggregator_client.wire import Problem

PROBLEM_JSON = "application/problem+json"
ARTICLE_PATHS = ("/v1/articles", "/v1/related", "/v1/explain")
METHODS_WITH_BODY = ("POST", "PUT")
CLIENT_CLOSED_REQUEST = 499  # nginx's status for a client that disconnected
# Errors for the audit log. A missing key is not among them: it only means that the user has not signed in.
AUDITED_ERRORS = (errors.InvalidApiKey, errors.Forbidden, errors.CrossSiteRequest, errors.UnknownHost)
RETRIABLE_ERRORS = (
    errors.StoreUnavailable,
    errors.RateLimited,
    errors.TooManyStreams,
    errors.IdempotencyKeyInUse,
)

log = logging.getLogger(__name__)


def not_ready_response(reason: str) -> web.Response:
    """503 with the reason why requests cannot be served."""
    return problem_response(
        make_problem(HTTPStatus.SERVICE_UNAVAILABLE, "not_ready", reason), {"Retry-After": "1"}
    )


def malformed_request_response(status: int, error: BaseException | None) -> web.Response:
    """The response to bytes that do not form a request: a header that is too long, or not HTTP."""
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return problem_response(to_problem(Exception()))
    detail = (
        "The request line or a header is too long; the limit is 8190 bytes."
        if isinstance(error, LineTooLong)
        else "Not a valid HTTP/1.1 request."
    )
    return problem_response(make_problem(HTTPStatus(status), "http", detail))


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
                "problem.html",
                page="problem",
                problem=problem,
                user=caller_name(request),
            )
            return web.Response(
                body=page, status=problem.status, content_type="text/html", charset="utf-8", headers=headers
            )
    return web.Response(
        body=encode(problem) + b"\n",
        status=problem.status,
        content_type=PROBLEM_JSON,
        headers=headers,
        charset=None,
    )


def _wants_html(request: web.Request) -> bool:
    path = request.rel_url.raw_path
    return "text/html" in request.headers.get("Accept", "") and not path.startswith(("/v1/", "/static/"))


@web.middleware
async def error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Convert every error of the handler into a problem response."""
    try:
        return await handler(request)
    except errors.AggregatorError as error:
        return _application_error_response(request, error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _http_exception_response(request, error)
    except ConnectionError:  # the client disconnected: no response can be read, no error to log
        return web.Response(status=CLIENT_CLOSED_REQUEST, reason="Client Closed Request")
    except Exception as error:
        request.app[METRICS].unexpected_errors.inc()
        log.exception(
            "request %s failed: %s %s", request.get(REQUEST_ID), request.method, request.rel_url.raw_path
        )
        return problem_response(to_problem(error), request=request)


@web.middleware
async def refuse_unread_index(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests on articles while stored ones are not read: they would be unknown, their copies new."""
    if request.path.startswith(ARTICLE_PATHS):
        problem = request.app[SERVICE].readiness.problems.get(unread_index.CHECK_NAME)
        if problem is not None:
            return not_ready_response(problem)
    return await handler(request)


async def handle_expect_header(request: web.Request) -> web.StreamResponse | None:
    """Refuse expectations other than ``100-continue`` with a problem, not aiohttp's plain text.

    ``body.py`` answers ``Expect: 100-continue`` when it reads the body, so that a refused request's body is
    not sent.
    """
    expectation = request.headers.get("Expect", "")
    if request.version < HttpVersion11 or expectation.lower() == "100-continue":
        return None
    detail = f"Expect: only 100-continue is supported, not {expectation[:40]!r}."
    return problem_response(make_problem(HTTPStatus.EXPECTATION_FAILED, "http", detail), request=request)


def _application_error_response(request: web.Request, error: errors.AggregatorError) -> web.Response:
    place = "body" if request.method in METHODS_WITH_BODY else "parameter"
    headers, problem = {}, to_problem(error, place)
    if isinstance(error, AUDITED_ERRORS):
        _audit_rejection(request, problem.code)
    if isinstance(error, errors.Unauthenticated):
        if request.method == "GET" and _wants_html(request):
            return web.Response(
                status=303, headers={"Location": "/sign-in?next=" + quote(request.raw_path, safe="")}
            )
        headers["WWW-Authenticate"] = 'Bearer realm="aggregator"'
    if isinstance(error, RETRIABLE_ERRORS):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.StoreUnavailable):
        log.warning("request %s: %s", request.get(REQUEST_ID), error)
    if isinstance(error, errors.BodyTimeout):
        headers["Connection"] = "close"
    return problem_response(problem, headers, request)


def _audit_rejection(request: web.Request, code: str) -> None:
    key = request.get(CALLER_KEY)
    request.app[REJECTED_LOG].log(
        request.method,
        request.rel_url.raw_path,
        code=code,
        peer=request.remote,
        key_id=key.id if key is not None else "",
        request_id=request.get(REQUEST_ID),
    )


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
