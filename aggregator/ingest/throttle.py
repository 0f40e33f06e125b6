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
GIVES = 1.0
# For so long after a single article the next one is expected, less and less.
CALM_S = 10.0
LONGEST_S = 0.25
# Articles that are looked up and committed at once: a single article that comes in between waits for these.
PIECE = 8


def pause_s(since_s: float, took_s: float) -> float:
    """Seconds to pause after work of ``took_s``, when the newest single article came ``since_s`` ago (inf: none did).

    >>> pause_s(0.0, 0.02), pause_s(5.0, 0.02), pause_s(10.0, 0.02)
    (0.02, 0.01, 0.0)
    """
    return min(LONGEST_S, GIVES * took_s * max(0.0, 1.0 - since_s / CALM_S))


class Singles(Protocol):
    """Who knows whether articles arrive one by one."""

    async def since_s(self) -> float:
        """How long ago the newest came, in seconds; inf: long ago, or never."""


class Pace:
    """For all bulk work of one process. ``give_way`` lets a single article that is under way end first."""

    def __init__(
        self,
        singles: Singles,
        give_way: Callable[[], Awaitable[None]],
        *,
        clock_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._singles, self._give_way = singles, give_way
        self._clock_s, self._sleep = clock_s, sleep
        self._one_at_a_time = asyncio.Lock()
        self._next_s = 0.0
        self.paused_s = 0.0  # since the start, for metrics

    @asynccontextmanager
    async def piece(self, articles: int, small: int = PIECE) -> AsyncIterator[int]:
        """Waits for its turn; gives how many of so many articles to take now. What is done inside is what it took."""
        since_s = await self._singles.since_s()
        if pause_s(since_s, 1.0) == 0.0:
            yield articles
            return
        async with self._one_at_a_time:
            if (wait_s := self._next_s - self._clock_s()) > 0:
                await self._sleep(wait_s)
                self.paused_s += wait_s
            await self._give_way()
            began_s = self._clock_s()
            try:
                yield min(articles, small)
            finally:
                ended_s = self._clock_s()
                self._next_s = ended_s + pause_s(since_s, ended_s - began_s)


def piece_of(pace: Pace | None, articles: int, small: int = PIECE) -> AbstractAsyncContextManager[int]:
    """``Pace.piece``; all of them where nothing paces."""
    return nullcontext(articles) if pace is None else pace.piece(articles, small)
