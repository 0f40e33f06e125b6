"""Bulk throttle: bulk work pauses in proportion to its duration while interactive articles arrive.

A crawler waits for the answer to its single article; bulk work (batches, imports, reindexing) can wait. While
interactive articles arrive, bulk work runs in small slices, one at a time per process, each followed by a
pause. So most interactive articles find processors and store idle, and none waits for more than one slice.
When none has arrived for ``QUIET_AFTER_S``, bulk work runs at full speed. It always keeps its share of the
time, so it ends even where interactive articles never cease.

Operating system priorities do not suffice: they do not reach the store, nor processes of another login,
container or machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Protocol

# Seconds of pause per second of work while interactive articles arrive.
PAUSE_RATIO = 1.0
# The pause shrinks to 0 over this time after the newest interactive article.
QUIET_AFTER_S = 10.0
MAX_PAUSE_S = 0.25
# Articles looked up and committed in one slice: the longest that an interactive article waits for.
SLICE_ARTICLES = 8


def pause_s(since_last_s: float, work_s: float) -> float:
    """Seconds to pause after ``work_s`` of work, ``since_last_s`` after the newest interactive article.

    >>> pause_s(0.0, 0.02), pause_s(5.0, 0.02), pause_s(10.0, 0.02)
    (0.02, 0.01, 0.0)
    """
    return min(MAX_PAUSE_S, PAUSE_RATIO * work_s * max(0.0, 1.0 - since_last_s / QUIET_AFTER_S))


class InteractiveActivity(Protocol):
    """Source of the time since the newest interactive article; see ``activity.py``."""

    async def seconds_since_last(self) -> float:
        """Seconds since the newest interactive article arrived; inf if none did."""


class BulkThrottle:
    """Throttle for all bulk work of one process.

    ``yield_control`` is awaited before each slice, so that an interactive article in progress ends first.
    """

    def __init__(
        self,
        activity: InteractiveActivity,
        yield_control: Callable[[], Awaitable[None]],
        *,
        clock_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._activity, self._yield_control = activity, yield_control
        self._clock_s, self._sleep = clock_s, sleep
        self._slice_lock = asyncio.Lock()
        self._next_slice_at_s = 0.0
        self.throttled_s = 0.0  # total of all pauses, for metrics

    @asynccontextmanager
    async def slice(self, articles: int, slice_articles: int = SLICE_ARTICLES) -> AsyncIterator[int]:
        """Wait for the next slice; yields how many of ``articles`` to process in it.

        The time spent inside the context is the work that the following pause is proportional to.
        """
        since_s = await self._activity.seconds_since_last()
        if pause_s(since_s, 1.0) == 0.0:
            yield articles
            return
        async with self._slice_lock:
            if (wait_s := self._next_slice_at_s - self._clock_s()) > 0:
                await self._sleep(wait_s)
                self.throttled_s += wait_s
            await self._yield_control()
            began_s = self._clock_s()
            try:
                yield min(articles, slice_articles)
            finally:
                ended_s = self._clock_s()
                self._next_slice_at_s = ended_s + pause_s(since_s, ended_s - began_s)


def throttled_slice(
    throttle: BulkThrottle | None, articles: int, slice_articles: int = SLICE_ARTICLES
) -> AbstractAsyncContextManager[int]:
    """``BulkThrottle.slice``; one slice of all articles without a throttle."""
    return nullcontext(articles) if throttle is None else throttle.slice(articles, slice_articles)
