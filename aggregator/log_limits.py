"""Logs: a problem is logged once until it changes, or at most once per interval; the id of a request."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextvars import ContextVar

current_request_id: ContextVar[str] = ContextVar("request_id", default="")  # for log records
MAX_CAUSES = 100
# Times, durations and shares in a sentence: they differ each time, the cause does not.
_FIGURES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{1,20}Z|(?<![\d.,])\d[\d.,]{0,20}(?= days|%)")


class ChangeFilter:
    """Passes a problem when it differs in more than figures from the one before it."""

    def __init__(self) -> None:
        self._current = ""

    def is_new(self, problem: str) -> bool:
        """Record a problem; returns whether it differs from the previous one."""
        former, self._current = self._current, _FIGURES.sub("", problem)
        return former != self._current

    def clear(self) -> bool:
        """Record a success; returns whether there was a problem before it."""
        failed, self._current = bool(self._current), ""
        return failed


class LogThrottle:
    """Passes one event per cause and ``interval_s``, counts the suppressed ones; ``clock`` in seconds."""

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s, self._clock = interval_s, clock
        self._states: dict[str, tuple[float, int]] = {}  # by cause: time of the next event, suppressed ones

    def admit(self, cause: str = "") -> int | None:
        """Number of its events suppressed since the last admitted one; None if this one is suppressed too."""
        now_s, cause = self._clock(), _FIGURES.sub("", cause)
        next_s, suppressed = self._states.pop(cause, (now_s, 0))
        is_due = now_s >= next_s
        self._states[cause] = (now_s + self._interval_s, 0) if is_due else (next_s, suppressed + 1)
        if len(self._states) > MAX_CAUSES:
            del self._states[next(iter(self._states))]  # that of the cause met longest ago
        return suppressed if is_due else None
