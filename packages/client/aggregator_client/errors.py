"""Errors of the client, as one class hierarchy.

ClientError
├── InvalidInput         the service rejects the article or the values
│   └── InputTooLarge    over a limit of the service
├── NotFound             nothing is stored under this id
│   └── TakenDown        the text of the article was taken down
├── ConfigurationError   an option, the URL or the key cannot work
└── Unavailable          no usable answer within the deadline; a later attempt may succeed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ClientError(Exception):
    """Base class of all exceptions that this package defines.

    ``decisions``: of ``submit_many``, one ``Decision`` per article of the batches that were sent, in order,
    "unknown" for those without a verdict.
    """

    decisions: Sequence[Any] = ()


class InvalidInput(ClientError):
    """The service rejects the article or the values. ``field``: the offending part; None: no single part."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class InputTooLarge(InvalidInput):
    """An article or a batch above a limit of the service."""


class NotFound(ClientError):
    """Nothing is stored under this id."""


class TakenDown(NotFound):
    """The text of the article was taken down, so the service does not store it."""


class ConfigurationError(ClientError):
    """An option, the URL of the service or the key cannot work."""


class Unavailable(ClientError):
    """No usable answer within the deadline. Submitting the article again is safe.

    ``kind``: why, one of "timeout", "connection_refused", "connection_lost", "connection_failed",
    "name_resolution", "tls", "overloaded", "rate_limited", "unavailable" (another 503, 502, 504 or 408),
    "server_error" (another 5xx), "access_denied" (401, 403) and "not_an_aggregator".
    """

    def __init__(self, message: str, kind: str = "unavailable") -> None:
        super().__init__(message)
        self.kind = kind
