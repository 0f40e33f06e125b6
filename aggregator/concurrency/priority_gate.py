"""Who goes first? A crawler waits for the answer to its one article; a batch and the detector can wait.

They share one event loop. Whatever has many steps to do gives way after each: while a single article is under
way it stands still, so that the article's next step comes at once and not behind a step of each of them. But never for longer than
``PATIENCE_S`` a step: where single articles never cease, the rest still goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# About what a single article takes alone. At worst a step of a batch (some articles) or of the detector (one) each.
MAX_WAIT_S = 0.005
SLICE_S = 0.005


class PriorityGate:
    """For the tasks of one event loop."""

    def __init__(self) -> None:
        self._high_priority_count = 0
        self._waiters: set[asyncio.Future[None]] = set()

    @contextmanager
    def high_priority(self) -> Iterator[None]:
        """Whoever holds this goes before all who give way."""
        self._high_priority_count += 1
        try:
            yield
        finally:
            self._high_priority_count -= 1
            if not self._high_priority_count:
                for waiting in self._waiters:
                    _wake(waiting)

    async def yield_control(self) -> None:
        """Everything else has its turn; returns when nobody goes first any more, or patience ends."""
        if not self._high_priority_count:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        waiting = loop.create_future()
        patience = loop.call_later(MAX_WAIT_S, _wake, waiting)
        self._waiters.add(waiting)
        try:
            await waiting
        finally:
            patience.cancel()
            self._waiters.discard(waiting)


class TimeSlicer:
    """For a process in which nobody waits: the rest of its event loop has its turn after a spell, not after each step."""

    def __init__(self, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._slice_end_s = 0.0

    async def yield_control(self) -> None:
        """Mostly returns at once: going round the loop takes longer than many a step."""
        if self._clock_s() >= self._slice_end_s:
            await asyncio.sleep(0)
            self._slice_end_s = self._clock_s() + SLICE_S


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
