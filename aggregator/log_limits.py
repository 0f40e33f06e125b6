"""Logs: a problem is logged once until it changes, or at most once per interval; the id of a request."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar

from aggregator.errors import AggregatorError

current_request_id: ContextVar[str] = ContextVar("request_id", default="")  # for log records


class ChangeFilter:
    """Passes a problem when it differs from the one before it: the same failure is logged once."""

    def __init__(self) -> None:
        self._current = ""

    def is_new(self, problem: str) -> bool:
        """Record a problem; returns whether it differs from the previous one."""
        changed, self._current = problem != self._current, problem
        return changed

    def log_retry(self, logger: logging.Logger, task: str, error: Exception) -> None:
        """Log that a task failed, if the reason is new; with a traceback if it is unexpected."""
        expected = isinstance(error, AggregatorError)
        if self.is_new(str(error) if expected else repr(error)):
            logger.warning("%s failed and will be retried: %s", task, error, exc_info=not expected)

    def clear(self) -> bool:
        """Record a success; returns whether there was a problem before it."""
        failed, self._current = bool(self._current), ""
        return failed


class LogThrottle:
    """Passes at most one event per ``interval_s`` and counts the suppressed ones; ``clock`` in seconds."""

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._next_s = float("-inf")
        self._suppressed = 0

    def admit(self) -> int | None:
        """Number of events suppressed since the last admitted one; None if this one is suppressed too."""
        now_s = self._clock()
        if now_s < self._next_s:
            self._suppressed += 1
            return None
        suppressed, self._suppressed = self._suppressed, 0
        self._next_s = now_s + self._interval_s
        return suppressed
