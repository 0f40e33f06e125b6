"""Exceptions of the package; every message is one sentence that says what was wrong, where, and what to do.

Driver errors (redis, sockets) are converted in ``store/diagnostics.py`` only; HTTP statuses and problem codes
are assigned in ``contract/problems.py`` only.
"""

from __future__ import annotations


class AggregatorError(Exception):
    """Base class of all exceptions that this package defines."""


class InvalidInput(AggregatorError):
    """The caller's data is unusable.

    field   the offending part, such as "ids[1]"; "body" for all of it, None if no single part is
    reason  why, one of ``contract.validation.REASONS``
    path    member names and list positions that lead to the part in a JSON body; None: derived from ``field``
    place   "body" or "parameter" (of query or path); None: not known here
    others  further errors of the same input
    """

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        reason: str = "invalid",
        path: tuple[str | int, ...] | None = None,
        place: str | None = None,
    ) -> None:
        super().__init__(message)
        self.field, self.reason, self.path, self.place = field, reason, path, place
        self.others: tuple[InvalidInput, ...] = ()


class NoText(InvalidInput):
    """An article without any text to fingerprint (for HTML: after extraction)."""


class InputTooLarge(InvalidInput):
    """A body, line, text or batch above its documented limit."""


class UnsupportedEncoding(InvalidInput):
    """A request body with a Content-Encoding other than identity and gzip."""


class BodyTimeout(InvalidInput):
    """A request body that did not arrive in time."""


class CrossSiteRequest(InvalidInput):
    """A request that a page of another site made a browser send."""


class UnknownHost(InvalidInput):
    """A request for a host name that the settings do not name and public DNS may resolve."""


class AnalysisLimitExceeded(InvalidInput):
    """An article whose analysis exceeds the limit of processor time or memory."""


class NotFound(AggregatorError):
    """Nothing is stored under this id."""


class Expired(NotFound):
    """An article was stored under this id and has expired or was deleted."""


class TakenDown(NotFound):
    """The text was taken down and is not accepted under any id."""


class Conflict(AggregatorError):
    """The stored state does not allow the request; a retry fails until that state changes."""


class RateLimited(AggregatorError):
    """A key exceeds its rate limit; ``retry_after_s``: time until the next request can pass."""

    retry_after_s = 1


class Overloaded(RateLimited):
    """This process handles as many requests as it can answer in time, or its workers get no processor."""


class DeadlineExceeded(Overloaded):
    """A request was not finished in time; what it may have stored meanwhile is found by repeating it."""


class TooManyStreams(AggregatorError):
    """Every slot for an open event stream is taken, or the service is shutting down."""

    retry_after_s = 5


class Unauthenticated(AggregatorError):
    """A key is required and the request carries none."""


class InvalidApiKey(Unauthenticated):
    """The request carries a key that is unknown, revoked or expired."""


class Forbidden(AggregatorError):
    """The caller's key does not permit this request, or this ``field`` of an article."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class StoreUnavailable(AggregatorError):
    """The store cannot serve now; retrying is safe, since every write is idempotent."""

    retry_after_s = 1


class DamagedValue(StoreUnavailable):
    """A stored value is damaged: requests that need it fail until an operator has repaired or deleted it."""


class CommitConflict(StoreUnavailable):
    """Every commit attempt lost a race: near articles were committed after each look-up."""


class ImplausibleClock(StoreUnavailable):
    """The clock of this machine cannot be right, so nothing is stored until it is."""

    retry_after_s = 10


class ModelError(AggregatorError):
    """A feature model file is missing, truncated, not a model, or of another format version."""


class ConfigurationError(AggregatorError):
    """Settings that cannot work; ``problems`` lists every problem found."""

    def __init__(self, problems: list[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("; ".join(self.problems))


EXIT_OK = 0
EXIT_PARTIAL_FAILURE = 1  # some input lines were invalid, or nothing is stored under an id
EXIT_CONFIGURATION_ERROR = 2  # usage, settings, files or models that cannot work
EXIT_UNAVAILABLE = 3  # the store or the server is unavailable
EXIT_INTERRUPTED = 130


def exit_code(error: AggregatorError) -> int:
    """The exit code of a process or command that ends with an error."""
    if isinstance(error, StoreUnavailable):
        return EXIT_UNAVAILABLE
    return EXIT_PARTIAL_FAILURE if isinstance(error, NotFound) else EXIT_CONFIGURATION_ERROR
