"""One line of log for requests that never become one: bytes that are not HTTP, and heads that are too long.

No handler sees them, so nothing else tells of them. What was sent is not repeated: a head may hold a key. And whoever sends
such bytes must not fill the log: after a line there is none for a while, and the next one says how many there were.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from aiohttp import http_exceptions

LOG_INTERVAL_S = 10.0
# The first class that fits decides; a subclass stands before its base.
REJECTION_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (http_exceptions.LineTooLong, "a line that is too long"),
    (http_exceptions.BadHttpMethod, "no method of HTTP, perhaps TLS"),
    (http_exceptions.BadStatusLine, "a first line that is none of HTTP"),
    (http_exceptions.InvalidHeader, "a malformed header"),
    (http_exceptions.TransferEncodingError, "a damaged transfer encoding"),
    (http_exceptions.ContentLengthError, "a length that does not fit"),
)
OTHER_REASON = "bytes that are not HTTP/1.1"

log = logging.getLogger(__name__)


class RejectedConnectionLog:
    """For all connections of one process. ``clock``: monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_log_s = float("-inf")
        self._suppressed = 0

    def log(self, peer: str | None, status: int, error: BaseException | None) -> None:
        """Log it, or count it for the next line."""
        now_s = self._clock()
        if now_s < self._next_log_s:
            self._suppressed += 1
            return
        untold, self._suppressed, self._next_log_s = self._suppressed, 0, now_s + LOG_INTERVAL_S
        reason = next((told for kind, told in REJECTION_REASONS if isinstance(error, kind)), OTHER_REASON)
        log.warning(
            "What arrived from %s is no request (%d): %s; %d more of the kind since the last such line",
            peer, status, reason, untold,
            extra={"fields": {"peer": peer, "status": status, "reason": reason, "more": untold}},
        )  # fmt: skip
