"""What arrives while a round is under way goes into the next one together: no waiting, fewer rounds.

Alone, an article starts at once. Under load the rounds of one process no longer race each other, and
each costs the same few round trips for all that is in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aggregator.ingest.pending import PendingArticle, split_batches


class MicroBatcher:
    """Hands arrivals to ``settle`` in the order they came, one group of at most ``size`` at a time, no id twice in it."""

    def __init__(self, process: Callable[[list[PendingArticle]], Awaitable[None]], max_articles: int) -> None:
        self._process = process
        self._max_articles = max_articles
        self._queue: list[tuple[PendingArticle, asyncio.Future[None]]] = []
        self._busy = False
        self._drain_task: asyncio.Task[None] | None = None  # referred to, lest it be collected under way

    async def submit(self, pending: PendingArticle) -> None:
        """Returns once it has its answer; raises what its group's round raised.

        Who finds nobody under way settles its own article and is cancelled with it; who waits and is
        cancelled leaves its article in the round.
        """
        if self._busy:
            done = asyncio.get_running_loop().create_future()
            self._queue.append((pending, done))
            try:
                await done
            finally:
                del done  # it holds the error that holds this frame: see ``store/pipe.py``
            return
        self._busy = True
        try:
            await self._process([pending])
        finally:
            self._busy = bool(self._queue)
            if self._busy:
                self._drain_task = asyncio.create_task(self._drain_queue())

    async def _drain_queue(self) -> None:
        try:
            while self._queue:
                group = next(split_batches([arrival for arrival, _ in self._queue], self._max_articles))
                asked = [done for _, done in self._queue[: len(group)]]
                del self._queue[: len(group)]
                await self._process_batch(group, asked)
        finally:
            self._busy = False

    async def _process_batch(self, batch: list[PendingArticle], waiters: list[asyncio.Future[None]]) -> None:
        try:
            await self._process(batch)
        except Exception as error:
            _fail_waiters(waiters, error)
        except BaseException:  # the process ends
            for done in waiters:
                done.cancel()
            raise
        else:
            for done in waiters:
                if not done.done():
                    done.set_result(None)


def _fail_waiters(waiters: list[asyncio.Future[None]], error: Exception) -> None:
    """Empties ``asked``: the error holds the frame that caught it, so that frame must not hold what holds the error."""
    while waiters:
        if not (done := waiters.pop()).done():
            done.set_exception(error)
