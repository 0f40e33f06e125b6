"""Lines of the audit log on who was refused: a key or a session that does not work, or is not enough, another site's page.

Whoever tries keys must not go unseen, nor fill the log: after a line there is none for a while, and the next one says
how many there were. What was presented is not repeated. A browser without any is only led to the sign-in page.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from aiohttp import web

from aggregator.auth.api_keys import audit_log
from aggregator.http.app_keys import CALLER_KEY, REQUEST_ID

LOG_INTERVAL_S = 10.0


class RejectedRequestLog:
    """For all requests of one process. ``clock``: monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_log_s = float("-inf")
        self._suppressed = 0

    def log(self, request: web.Request, code: str) -> None:
        """Log it, or count it for the next line. ``code``: of the problem that it is answered with."""
        now_s = self._clock()
        if now_s < self._next_log_s:
            self._suppressed += 1
            return
        untold, self._suppressed, self._next_log_s = self._suppressed, 0, now_s + LOG_INTERVAL_S
        key = request.get(CALLER_KEY)
        audit_log.warning(
            "refused %s %s code=%s from=%s key=%s request=%s; %d more since the last such line",
            request.method, request.rel_url.raw_path[:500], code, request.remote, key.id if key else "-",
            request.get(REQUEST_ID), untold,
        )  # fmt: skip
