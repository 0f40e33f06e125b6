"""What can go wrong, as one tree.

    AggregatorError
    ├── BadInput              the caller sent something unusable       -> 4xx, exit 2
    │   ├── NoText            HTML without main text                   -> 422
    │   ├── TooLarge          over a stated limit                      -> 413
    │   └── TooCostly         takes too much time or memory            -> 400
    ├── NotFound              nothing stored under this id             -> 404
    │   └── Gone              it was stored and has expired            -> 410
    ├── Conflict              what is stored does not allow it         -> 409
    ├── OverLimit             a key asks for too much at once          -> 429, retry later
    ├── StoreUnavailable      away, loading, read-only, full           -> 503, retry later
    │   └── Contention        the commit kept losing its race          -> 503, retry at once
    ├── ModelError            missing, truncated, foreign, mismatched  -> refuse to start
    └── ConfigurationError    settings that cannot work                -> refuse to start

Every message is one sentence that says what was wrong, where, and what to do.
Driver errors (redis, sockets) are converted in ``store/link.py`` and nowhere
else; an HTTP status is chosen in ``http/errors.py`` and nowhere else.
"""

from __future__ import annotations


class AggregatorError(Exception):
    """Base of every error this package raises on purpose."""


class InvalidInput(AggregatorError):
    """The caller's data is unusable; ``field`` names the part of it, when one part is to blame."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class NoText(InvalidInput):
    """An article without any text to fingerprint (after extraction, when it came as HTML)."""


class InputTooLarge(InvalidInput):
    """A body, line, text or batch above its documented limit."""


class AnalysisLimitExceeded(InvalidInput):
    """An article whose analysis takes more time or memory than is given to one."""


class NotFound(AggregatorError):
    """Nothing is stored under this id."""


class Expired(NotFound):
    """Something was stored under this id and has expired or was taken down."""


class Conflict(AggregatorError):
    """What is stored does not allow what was asked; asking again does not help before something else changes."""


class RateLimited(AggregatorError):
    """A key asks for more than its share; ``retry_after_s``: when there will be something left."""

    retry_after_s = 1


class StoreUnavailable(AggregatorError):
    """The store cannot serve now; trying again later is safe, since every write is idempotent."""

    retry_after_s = 1


class CommitConflict(StoreUnavailable):
    """Too many neighbours were committed between this article's look-up and its commit."""


class ModelError(AggregatorError):
    """A feature model is missing, truncated, foreign or of another format version."""


class ConfigurationError(AggregatorError):
    """Settings that cannot work; ``problems`` lists all of them, not only the first."""

    def __init__(self, problems: list[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("; ".join(self.problems))
