"""Errors become answers here, and only here: RFC 9457 problem details with one sentence each."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.typedefs import Handler

from aggregator import errors
from aggregator.contract.responses import Problem, encode
from aggregator.http.app_keys import METRICS, PAGES, REJECTED_LOG, REQUEST_ID, caller_name
from aggregator.http.limits.load_shedding import Overloaded

PROBLEM_JSON = "application/problem+json"
CLIENT_CLOSED_REQUEST = 499  # as nginx counts them

log = logging.getLogger(__name__)


class UnsupportedEncoding(errors.InvalidInput):
    """A body in an encoding that we do not undo."""


class BodyTimeout(errors.InvalidInput):
    """A body that did not arrive in time."""


class CrossSiteRequest(errors.InvalidInput):
    """A browser was made to send this by a page of another site."""


class Unauthenticated(errors.AggregatorError):
    """A key is asked for, and none that works was sent."""


class Forbidden(errors.AggregatorError):
    """The caller's key does not allow it."""


class InvalidApiKey(Unauthenticated):
    """What was presented is no key that works."""


class TooManyStreams(errors.AggregatorError):
    """Every place for an open stream is taken, or the service is going down."""

    retry_after_s = 5


# What the audit log tells of: whoever presents nothing has only not signed in.
AUDITED_ERRORS = (InvalidApiKey, Forbidden, CrossSiteRequest)

# The first class that fits decides; a subclass stands before its base.
ERROR_STATUSES: tuple[tuple[type[errors.AggregatorError], HTTPStatus, str], ...] = (
    (errors.NoText, HTTPStatus.UNPROCESSABLE_ENTITY, "no_text"),
    (errors.InputTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large"),
    (UnsupportedEncoding, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding"),
    (BodyTimeout, HTTPStatus.REQUEST_TIMEOUT, "slow_body"),
    (CrossSiteRequest, HTTPStatus.FORBIDDEN, "cross_site"),
    (Unauthenticated, HTTPStatus.UNAUTHORIZED, "unauthenticated"),
    (Forbidden, HTTPStatus.FORBIDDEN, "forbidden"),
    (Overloaded, HTTPStatus.SERVICE_UNAVAILABLE, "overloaded"),
    (errors.RateLimited, HTTPStatus.TOO_MANY_REQUESTS, "over_limit"),
    (errors.AnalysisLimitExceeded, HTTPStatus.BAD_REQUEST, "too_costly"),
    (errors.InvalidInput, HTTPStatus.BAD_REQUEST, "bad_input"),
    (errors.Expired, HTTPStatus.GONE, "gone"),
    (errors.NotFound, HTTPStatus.NOT_FOUND, "not_found"),
    (TooManyStreams, HTTPStatus.SERVICE_UNAVAILABLE, "too_many_streams"),
    (errors.Conflict, HTTPStatus.CONFLICT, "conflict"),
    (errors.CommitConflict, HTTPStatus.SERVICE_UNAVAILABLE, "contention"),
    (errors.StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE, "store_unavailable"),
    (errors.ModelError, HTTPStatus.SERVICE_UNAVAILABLE, "model"),
    (errors.ConfigurationError, HTTPStatus.SERVICE_UNAVAILABLE, "configuration"),
)
PROBLEM_TITLES = {
    "bad_input": "The request cannot be used",
    "no_text": "There is no text in this article",
    "too_costly": "This article takes too much time or memory",
    "too_large": "The request is too large",
    "unsupported_encoding": "The body has an encoding that is not understood",
    "slow_body": "The body did not arrive in time",
    "cross_site": "Requests from other sites are refused",
    "unauthenticated": "An access key is needed",
    "forbidden": "This key does not allow it",
    "over_limit": "This key asks for too much at once",
    "not_found": "Nothing is stored under this id",
    "gone": "It has expired or was taken down",
    "conflict": "What is stored does not allow this",
    "contention": "Too many near-copies at once",
    "store_unavailable": "The store is unavailable",
    "overloaded": "Too many articles are on their way",
    "too_many_streams": "Too many streams are open",
    "model": "A feature model is missing or does not fit",
    "configuration": "The service is not configured to do this",
    "no_route": "There is no such address",
    "method_not_allowed": "This address does not take that method",
    "http": "The request cannot be used",
    "not_ready": "The service is not ready",
    "internal": "Something went wrong here",
}


def to_problem(error: Exception) -> Problem:
    """What is told about an error of ours; anything else says nothing of its inside."""
    if isinstance(error, errors.AggregatorError):
        for kind, status, code in ERROR_STATUSES:
            if isinstance(error, kind):
                return _make_problem(status, code, str(error), field=getattr(error, "field", None))
    return _make_problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal",
        "An error that nobody expected; the server's log has it under this request_id.",
    )


def not_ready_response(reason: str) -> web.Response:
    """503: why requests cannot be served now."""
    return problem_response(
        _make_problem(HTTPStatus.SERVICE_UNAVAILABLE, "not_ready", reason), {"Retry-After": "1"}
    )


def malformed_request_response(status: int, error: BaseException | None) -> web.Response:
    """What arrived is no request that the application ever sees: too long, or not HTTP."""
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return problem_response(to_problem(Exception()))
    detail = (
        "The request line or a header is too long; at most 8190 bytes are read."
        if isinstance(error, LineTooLong)
        else "What arrived is not a valid HTTP/1.1 request."
    )
    return problem_response(_make_problem(HTTPStatus(status), "http", detail))


def problem_response(
    problem: Problem, headers: Mapping[str, str] | None = None, request: web.Request | None = None
) -> web.Response:
    """The answer that carries a problem."""
    if request is not None:
        problem.instance = request.rel_url.raw_path
        problem.request_id = request.get(REQUEST_ID)
        if _wants_html(request):
            page = request.app[PAGES].render(
                "problem.html",
                page="problem",
                problem=problem,
                stream="",
                position="",
                who=caller_name(request),
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
    """A person's browser outside the interface: the same problem as a page."""
    path = request.rel_url.raw_path
    return "text/html" in request.headers.get("Accept", "") and not path.startswith(("/v1/", "/static/"))


@web.middleware
async def error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """No error leaves the application but as a problem."""
    try:
        return await handler(request)
    except errors.AggregatorError as error:
        return _application_error_response(request, error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _http_exception_response(request, error)
    except ConnectionError:  # the caller is gone: nobody reads this, and it is no fault of ours to log
        return web.Response(status=CLIENT_CLOSED_REQUEST, reason="Client Closed Request")
    except Exception as error:
        request.app[METRICS].unexpected_errors.inc()
        log.exception(
            "request %s failed: %s %s", request.get(REQUEST_ID), request.method, request.rel_url.raw_path
        )
        return problem_response(to_problem(error), request=request)


async def handle_expect_header(request: web.Request) -> web.StreamResponse | None:
    """Before a body: go on for 100-continue; aiohttp would refuse anything else in plain text."""
    wish = request.headers.get("Expect", "")
    if request.version < HttpVersion11:
        return None
    if wish.lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
        return None
    detail = f"Expect: only 100-continue can be expected here, not {wish[:40]!r}."
    return problem_response(_make_problem(HTTPStatus.EXPECTATION_FAILED, "http", detail), request=request)


def _application_error_response(request: web.Request, error: errors.AggregatorError) -> web.Response:
    headers, told = {}, to_problem(error)
    if isinstance(error, AUDITED_ERRORS):
        request.app[REJECTED_LOG].log(request, told.code)
    if isinstance(error, Unauthenticated):
        if request.method == "GET" and _wants_html(request):
            return web.Response(
                status=303, headers={"Location": "/sign-in?next=" + quote(request.raw_path, safe="")}
            )
        headers["WWW-Authenticate"] = 'Bearer realm="aggregator"'
    if isinstance(error, errors.StoreUnavailable | errors.RateLimited | TooManyStreams):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.StoreUnavailable):
        log.warning("request %s: %s", request.get(REQUEST_ID), error)
    if isinstance(error, BodyTimeout):
        headers["Connection"] = "close"
    return problem_response(told, headers, request)


def _http_exception_response(request: web.Request, error: web.HTTPException) -> web.Response:
    path = request.rel_url.raw_path[:200]
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        detail = f"{path} takes {allowed}, not {request.method[:20]}."
        told = _make_problem(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        return problem_response(told, {"Allow": allowed}, request)
    if error.status == HTTPStatus.NOT_FOUND:
        detail = f"There is nothing at {path}; /docs lists all addresses."
        return problem_response(_make_problem(HTTPStatus.NOT_FOUND, "no_route", detail), request=request)
    return problem_response(
        _make_problem(HTTPStatus(error.status), "http", f"{error.reason}."), request=request
    )


def _make_problem(status: HTTPStatus, code: str, detail: str, field: str | None = None) -> Problem:
    return Problem(
        type=f"/docs#error-{code}",
        title=PROBLEM_TITLES[code],
        status=status.value,
        detail=detail,
        code=code,
        field=field,
    )
