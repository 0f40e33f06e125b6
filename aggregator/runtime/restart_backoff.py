"""Pauses between the restarts of a process: none after a long life, then doubling up to a limit."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 30.0
# A process that was ready for this long is restarted without a pause.
STABLE_S = 30.0


class RestartBackoff:
    """Pauses before the restarts of one process. ``monotonic``: clock in seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ready_since_s: float | None = None
        self._pause_s = 0.0

    def on_ready(self) -> None:
        """The process became ready."""
        self._ready_since_s = self._monotonic()

    def next_pause_s(self) -> float:
        """The process ended: the pause before its restart, in seconds."""
        ready_since_s, self._ready_since_s = self._ready_since_s, None
        if ready_since_s is not None and self._monotonic() - ready_since_s >= STABLE_S:
            self._pause_s = 0.0
        else:
            self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), MAX_PAUSE_S)
        return self._pause_s
