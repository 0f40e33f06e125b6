"""How much does a bulk load give way while articles arrive one by one?

Each of those has a crawler that waits; nobody waits for a line of a bulk load. While single articles arrive, whatever
comes in bulk is done in small pieces, one at a time, and after each there is a pause in proportion to what it took: so
most single articles find processors and store idle, and none waits for more than a piece. When none has arrived for
``CALM_S``, loads take all they can get. A load always has its share, so it ends also where single articles never do.

Priorities of the operating system do not suffice: they say nothing to the store, nor, where each login or container is
given its share, to another login or container, and nothing at all on another machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Protocol

# Pause per time of work while single articles arrive.
PAUSE_RATIO = 1.0
# For so long after a single article the next one is expected, less and less.
QUIET_AFTER_S = 10.0
MAX_PAUSE_S = 0.25
# Articles that are looked up and committed at once: a single article that comes in between waits for these.
SLICE_ARTICLES = 8


def pause_s(since_last_s: float, work_s: float) -> float:
    """Seconds to pause after work of ``took_s``, when the newest single article came ``since_s`` ago (inf: none did).

    >>> pause_s(0.0, 0.02), pause_s(5.0, 0.02), pause_s(10.0, 0.02)
    (0.02, 0.01, 0.0)
    """
    return min(MAX_PAUSE_S, PAUSE_RATIO * work_s * max(0.0, 1.0 - since_last_s / QUIET_AFTER_S))


class InteractiveActivity(Protocol):
    """Who knows whether articles arrive one by one."""

    async def seconds_since_last(self) -> float:
        """How long ago the newest came, in seconds; inf: long ago, or never."""


class BulkThrottle:
    """For all bulk work of one process. ``give_way`` lets a single article that is under way end first."""

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
        self.throttled_s = 0.0  # since the start, for metrics

    @asynccontextmanager
    async def slice(self, articles: int, slice_articles: int = SLICE_ARTICLES) -> AsyncIterator[int]:
        """Waits for its turn; gives how many of so many articles to take now. What is done inside is what it took."""
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
    """``Pace.piece``; all of them where nothing paces."""
    return nullcontext(articles) if throttle is None else throttle.slice(articles, slice_articles)
