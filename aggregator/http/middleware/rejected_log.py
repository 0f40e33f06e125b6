"""Throttled log lines for rejected requests (audit log) and for connections that sent no valid HTTP request.

A flood of attempts must neither go unnoticed nor fill the log: at most one line per LOG_INTERVAL_S, with the
number of suppressed ones. What a client sent is never repeated, since it may hold a key.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from aiohttp import http_exceptions

from aggregator.auth.api_keys import audit_log
from aggregator.log_limits import LogThrottle

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


class RejectedRequestLog:
    """Audit log of refused requests: invalid or insufficient keys, requests from other sites.

    One instance per process. ``clock``: monotonic, in seconds. Browsers without a session are not logged:
    they are redirected to the sign-in page.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._throttle = LogThrottle(LOG_INTERVAL_S, clock)

    def log(
        self, method: str, path: str, *, code: str, peer: str | None, key_id: str, request_id: str | None
    ) -> None:
        """Log a refused request, or count it for the next line. ``code``: problem code of the response."""
        suppressed = self._throttle.admit()
        if suppressed is not None:
            audit_log.warning(
                "refused %s %s code=%s from=%s key=%s request=%s; %d more since the last such line",
                method, path[:MAX_LOGGED_PATH_CHARS], code, peer, key_id or "-", request_id, suppressed,
            )  # fmt: skip


class RejectedConnectionLog:
    """Log of connections whose bytes never became a request that a handler sees.

    One instance per process. ``clock``: monotonic, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._throttle = LogThrottle(LOG_INTERVAL_S, clock)
        self._surplus_throttle = LogThrottle(LOG_INTERVAL_S, clock)

    def log_surplus(self, peer: str | None, max_connections: int) -> None:
        """Log a connection beyond the limit, or count it for the next line."""
        suppressed = self._surplus_throttle.admit()
        if suppressed is not None:
            log.warning(
                "refused a connection from %s: %d are open, none idle; %d more since the last such line",
                peer, max_connections, suppressed,
                extra={"fields": {"peer": peer, "status": 503, "more": suppressed}},
            )  # fmt: skip

    def log(self, peer: str | None, status: int, error: BaseException | None) -> None:
        """Log a rejected connection, or count it for the next line."""
        suppressed = self._throttle.admit()
        if suppressed is None:
            return
        reason = next((text for kind, text in REJECTION_REASONS if isinstance(error, kind)), OTHER_REASON)
        log.warning(
            "rejected malformed request from %s with status %d: %s; %d more since the last such line",
            peer, status, reason, suppressed,
            extra={"fields": {"peer": peer, "status": status, "reason": reason, "more": suppressed}},
        )  # fmt: skip
