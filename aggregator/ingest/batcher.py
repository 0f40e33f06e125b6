"""Micro-batching of interactive articles: those that arrive while a batch is processed form the next batch.

An article that arrives alone starts immediately. Under load one batch runs at a time, so the articles of one
process do not conflict with each other and share the round trips to the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aggregator.ingest.pending import PendingArticle, split_batches


class MicroBatcher:
    """Calls ``process`` with batches in order of arrival: at most ``max_articles``, no id twice."""

    def __init__(self, process: Callable[[list[PendingArticle]], Awaitable[None]], max_articles: int) -> None:
        self._process = process
        self._max_articles = max_articles
        self._queue: list[tuple[PendingArticle, asyncio.Future[None]]] = []
        self._busy = False
        self._drain_task: asyncio.Task[None] | None = None  # a reference, so that it is not collected

    async def submit(self, pending: PendingArticle) -> None:
        """Return once the article has its answer; raises what its batch raised.

        A caller that finds no batch running processes its own article, and its cancellation cancels that. A
        cancelled caller that waits in the queue leaves its article there.
        """
        if self._busy:
            done = asyncio.get_running_loop().create_future()
            self._queue.append((pending, done))
            try:
                await done
            finally:
                del done  # breaks the cycle future -> error -> frame: see ``store/pipelining.py``
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
                batch = next(split_batches([pending for pending, _ in self._queue], self._max_articles))
                waiters = [done for _, done in self._queue[: len(batch)]]
                del self._queue[: len(batch)]
                await self._process_batch(batch, waiters)
        finally:
            self._busy = False

    async def _process_batch(self, batch: list[PendingArticle], waiters: list[asyncio.Future[None]]) -> None:
        try:
            await self._process(batch)
        except Exception as error:
            _fail_waiters(waiters, error)
        except BaseException:  # the process stops
            for done in waiters:
                done.cancel()
            raise
        else:
            for done in waiters:
                if not done.done():
                    done.set_result(None)


def _fail_waiters(waiters: list[asyncio.Future[None]], error: Exception) -> None:
    """Fail all waiters and empty the list.

    The error refers to the frame that caught it; if that frame referred to the futures, they would form a
    reference cycle with the error.
    """
    while waiters:
        if not (done := waiters.pop()).done():
            done.set_exception(error)
