"""Errors as RFC 9457 problem details: the only place that assigns HTTP statuses and problem codes."""

from __future__ import annotations

import re
from http import HTTPStatus
from urllib.parse import quote

from aggregator import errors
from aggregator_client.wire import ErrorOut, Problem

# The first matching class decides, so a subclass precedes its base class.
ERROR_STATUSES: tuple[tuple[type[errors.AggregatorError], HTTPStatus, str], ...] = (
    (errors.NoText, HTTPStatus.UNPROCESSABLE_ENTITY, "no_text"),
    (errors.InputTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large"),
    (errors.UnsupportedEncoding, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding"),
    (errors.BodyTimeout, HTTPStatus.REQUEST_TIMEOUT, "slow_body"),
    (errors.IdempotencyKeyReused, HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency_key_reused"),
    (errors.CrossSiteRequest, HTTPStatus.FORBIDDEN, "cross_site"),
    (errors.UnknownHost, HTTPStatus.MISDIRECTED_REQUEST, "unknown_host"),
    (errors.Unauthenticated, HTTPStatus.UNAUTHORIZED, "unauthenticated"),
    (errors.Forbidden, HTTPStatus.FORBIDDEN, "forbidden"),
    (errors.DeadlineExceeded, HTTPStatus.SERVICE_UNAVAILABLE, "deadline_exceeded"),
    (errors.Overloaded, HTTPStatus.SERVICE_UNAVAILABLE, "overloaded"),
    (errors.RateLimited, HTTPStatus.TOO_MANY_REQUESTS, "over_limit"),
    (errors.AnalysisLimitExceeded, HTTPStatus.BAD_REQUEST, "too_costly"),
    (errors.InvalidInput, HTTPStatus.BAD_REQUEST, "bad_input"),
    (errors.Expired, HTTPStatus.GONE, "gone"),
    (errors.NotFound, HTTPStatus.NOT_FOUND, "not_found"),
    (errors.TooManyStreams, HTTPStatus.SERVICE_UNAVAILABLE, "too_many_streams"),
    (errors.IdempotencyKeyInUse, HTTPStatus.CONFLICT, "idempotency_key_in_use"),
    (errors.Conflict, HTTPStatus.CONFLICT, "conflict"),
    (errors.CommitConflict, HTTPStatus.SERVICE_UNAVAILABLE, "contention"),
    (errors.ImplausibleClock, HTTPStatus.SERVICE_UNAVAILABLE, "clock"),
    (errors.StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE, "store_unavailable"),
    (errors.ModelError, HTTPStatus.SERVICE_UNAVAILABLE, "model"),
    (errors.ConfigurationError, HTTPStatus.SERVICE_UNAVAILABLE, "configuration"),
)
PROBLEM_TITLES = {
    "bad_input": "Invalid request",
    "no_text": "The article contains no text",
    "too_costly": "The article takes too much processor time or memory to analyze",
    "too_large": "The request is too large",
    "unsupported_encoding": "Unsupported Content-Encoding",
    "slow_body": "The body did not arrive in time",
    "idempotency_key_reused": "The Idempotency-Key belongs to another request",
    "idempotency_key_in_use": "The first request with this Idempotency-Key has not finished",
    "cross_site": "Cross-site request refused",
    "unknown_host": "Not a host name of this service",
    "unauthenticated": "An access key is required",
    "forbidden": "This key does not permit the request",
    "over_limit": "Rate limit exceeded",
    "not_found": "Not found",
    "gone": "Expired or deleted",
    "conflict": "The stored state does not allow this",
    "contention": "Too many concurrent near-duplicates",
    "clock": "The clock of the server is wrong",
    "store_unavailable": "The store is unavailable",
    "overloaded": "The service is overloaded",
    "deadline_exceeded": "The request was not finished in time",
    "too_many_streams": "Too many open streams",
    "model": "A feature model is missing or does not fit",
    "configuration": "The service is not configured for this",
    "no_route": "No such address",
    "method_not_allowed": "Method not allowed",
    "http": "Invalid request",
    "not_ready": "The service is not ready",
    "internal": "Internal error",
}


def to_problem(error: Exception, place: str = "body") -> Problem:
    """The problem for an error; an unexpected one reveals nothing of its content.

    ``place``: where invalid input is that does not say it, "body" or "parameter".
    """
    if isinstance(error, errors.AggregatorError):
        for error_type, status, code in ERROR_STATUSES:
            if isinstance(error, error_type):
                problem = make_problem(status, code, str(error), field=getattr(error, "field", None))
                if isinstance(error, errors.InvalidInput) and error.field is not None:
                    _add_errors(problem, error, place)
                return problem
    return make_problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal",
        "Unexpected error; the server log has the details under this request_id.",
    )


def _add_errors(problem: Problem, error: errors.InvalidInput, place: str) -> None:
    reason = "invalid" if problem.code == "bad_input" else problem.code
    problem.errors = [_error_out(found, place, reason) for found in (error, *error.others)]
    if error.others:
        problem.detail += f" Number of further errors: {len(error.others)}, see `errors`."


def _error_out(error: errors.InvalidInput, place: str, reason: str) -> ErrorOut:
    out = ErrorOut(detail=str(error), code=reason if error.reason == "invalid" else error.reason)
    where = error.place or place
    if where == "body":
        out.pointer = _json_pointer(error.path if error.path is not None else _path(error.field or ""))
    elif where == "header":
        out.header = error.field
    else:
        out.parameter = error.field
    return out


def _path(field: str) -> tuple[str | int, ...]:
    """The steps of a field such as "a.ids[1]"; () for the whole body."""
    return () if field in ("body", "line") else tuple(re.findall(r"[^.\[\]]+", field))


def _json_pointer(path: tuple[str | int, ...]) -> str:
    """The URI fragment of a JSON pointer (RFC 6901, section 6)."""
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "#" + "".join("/" + quote(step, safe="~!$&'()*+,;=:@", errors="replace") for step in steps)


def make_problem(status: HTTPStatus, code: str, detail: str, field: str | None = None) -> Problem:
    """A problem with a code of ``PROBLEM_TITLES``."""
    return Problem(
        type=f"/docs#error-{code}",
        title=PROBLEM_TITLES[code],
        status=status.value,
        detail=detail,
        code=code,
        field=field,
    )
