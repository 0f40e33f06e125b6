"""Errors as RFC 9457 problem details: the only place that assigns HTTP statuses and problem codes."""

from __future__ import annotations

import re
from http import HTTPStatus
from urllib.parse import quote

from aggregator import errors
from aggregator_client.wire import ErrorOut, Problem

# The first matching class decides, so a subclass precedes its base class: status, code, title.
ERRORS: tuple[tuple[type[errors.AggregatorError], int, str, str], ...] = (
    (errors.NoText, 422, "no_text", "The article contains no text"),
    (errors.InputTooLarge, 413, "too_large", "The request is too large"),
    (errors.UnsupportedEncoding, 415, "unsupported_encoding", "Unsupported Content-Encoding"),
    (errors.BodyTimeout, 408, "slow_body", "The body did not arrive in time"),
    (errors.CrossSiteRequest, 403, "cross_site", "Cross-site request refused"),
    (errors.UnknownHost, 421, "unknown_host", "Not a host name of this service"),
    (errors.Unauthenticated, 401, "unauthenticated", "An access key is required"),
    (errors.Forbidden, 403, "forbidden", "This key does not permit the request"),
    (errors.DeadlineExceeded, 503, "deadline_exceeded", "The request was not finished in time"),
    (errors.Overloaded, 503, "overloaded", "The service is overloaded"),
    (errors.RateLimited, 429, "over_limit", "Rate limit exceeded"),
    (errors.AnalysisLimitExceeded, 400, "too_costly",
        "The article takes too much processor time or memory to analyze"),
    (errors.InvalidInput, 400, "bad_input", "Invalid request"),
    (errors.Expired, 410, "gone", "Expired or deleted"),
    (errors.TakenDown, 410, "taken_down", "Taken down"),
    (errors.NotFound, 404, "not_found", "Not found"),
    (errors.TooManyStreams, 503, "too_many_streams", "Too many open streams"),
    (errors.Conflict, 409, "conflict", "The stored state does not allow this"),
    (errors.CommitConflict, 503, "contention", "Too many concurrent near-duplicates"),
    (errors.ImplausibleClock, 503, "clock", "The clock of the server is wrong"),
    (errors.StoreUnavailable, 503, "store_unavailable", "The store is unavailable"),
    (errors.ModelError, 503, "model", "A feature model is missing or does not fit"),
    (errors.ConfigurationError, 503, "configuration", "The service is not configured for this"),
)  # fmt: skip
PROBLEM_TITLES = {code: title for _, _, code, title in ERRORS} | {
    "no_route": "No such address",
    "method_not_allowed": "Method not allowed",
    "http": "Invalid request",
    "not_ready": "The service is not ready",
    "internal": "Internal error",
}


def to_problem(error: Exception, place: str = "body") -> Problem:
    """The problem for an error; an unexpected one reveals nothing. ``place``: where invalid input is."""
    if isinstance(error, errors.AggregatorError):
        for error_type, status, code, _ in ERRORS:
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
        field = "" if error.field in (None, "body", "line") else error.field
        path = re.findall(r"[^.\[\]]+", field or "") if error.path is None else error.path  # of "a.ids[1]"
        # The URI fragment of a JSON pointer (RFC 6901, section 6).
        steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
        quoted = (quote(step, safe="~!$&'()*+,;=:@", errors="replace") for step in steps)
        out.pointer = "#" + "".join(f"/{step}" for step in quoted)
    else:
        out.parameter = error.field
    return out


def make_problem(status: int, code: str, detail: str, field: str | None = None) -> Problem:
    """A problem with a code of ``PROBLEM_TITLES``."""
    return Problem(
        type=f"/docs#error-{code}",
        title=PROBLEM_TITLES[code],
        status=int(status),
        detail=detail,
        code=code,
        field=field,
    )
