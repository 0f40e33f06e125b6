"""What arrives while a round is under way goes into the next one together: no waiting, fewer rounds.

Alone, an article starts at once. Under load the rounds of one process no longer race each other, and
each costs the same few round trips for all that is in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aggregator.ingest.pending import Arrival, chunks


class Gathering:
    """Hands arrivals to ``settle`` in the order they came, one group of at most ``size`` at a time, no id twice in it."""

    def __init__(self, settle: Callable[[list[Arrival]], Awaitable[None]], size: int) -> None:
        self._settle = settle
        self._size = size
        self._waiting: list[tuple[Arrival, asyncio.Future[None]]] = []
        self._busy = False
        self._round: asyncio.Task[None] | None = None  # referred to, lest it be collected under way

    async def add(self, arrival: Arrival) -> None:
        """Returns once it has its answer; raises what its group's round raised.

        Who finds nobody under way settles its own article and is cancelled with it; who waits and is
        cancelled leaves its article in the round.
        """
        if self._busy:
            done = asyncio.get_running_loop().create_future()
            self._waiting.append((arrival, done))
            try:
                await done
            finally:
                del done  # it holds the error that holds this frame: see ``store/pipe.py``
            return
        self._busy = True
        try:
            await self._settle([arrival])
        finally:
            self._busy = bool(self._waiting)
            if self._busy:
                self._round = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                group = next(chunks([arrival for arrival, _ in self._waiting], self._size))
                asked = [done for _, done in self._waiting[: len(group)]]
                del self._waiting[: len(group)]
                await self._settle_for(group, asked)
        finally:
            self._busy = False

    async def _settle_for(self, group: list[Arrival], asked: list[asyncio.Future[None]]) -> None:
        try:
            await self._settle(group)
        except Exception as error:
            _fail(asked, error)
        except BaseException:  # the process ends
            for done in asked:
                done.cancel()
            raise
        else:
            for done in asked:
                if not done.done():
                    done.set_result(None)


def _fail(asked: list[asyncio.Future[None]], error: Exception) -> None:
    """Empties ``asked``: the error holds the frame that caught it, so that frame must not hold what holds the error."""
    while asked:
        if not (done := asked.pop()).done():
            done.set_exception(error)
