"""Micro-batching of interactive articles: those that arrive while a batch is processed form the next batch.

An article that arrives alone starts immediately. One batch runs at a time, so the articles of one process do
not conflict with each other. Callers are served round-robin. A batch runs in a separate task: a cancelled
caller interrupts no write, and its article is dropped if its batch has not started.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from aggregator.concurrency import current_caller
from aggregator.ingest.pending import PendingArticle

_Waiting = tuple[PendingArticle, asyncio.Future[None]]


class MicroBatcher:
    """Calls ``process`` with batches of at most ``max_articles``, no id twice, in order per caller."""

    def __init__(self, process: Callable[[list[PendingArticle]], Awaitable[None]], max_articles: int) -> None:
        self._process = process
        self._max_articles = max_articles
        self._queues: dict[str, deque[_Waiting]] = {}  # by caller; the next one to serve is first
        self._drain_task: asyncio.Task[None] | None = None

    async def submit(self, pending: PendingArticle) -> None:
        """Return once the article has its answer; raises what its batch raised."""
        done = asyncio.get_running_loop().create_future()
        self._queues.setdefault(current_caller.get(), deque()).append((pending, done))
        if self._drain_task is None:
            self._drain_task = asyncio.create_task(self._drain_queues())
        try:
            await done
        finally:
            del done  # breaks the cycle future -> error -> frame: see ``store/pipelining.py``

    async def _drain_queues(self) -> None:
        try:
            while waiting := self._next_batch():
                await self._process_batch([pending for pending, _ in waiting], [done for _, done in waiting])
        finally:
            self._drain_task = None

    def _next_batch(self) -> list[_Waiting]:
        """One article of each caller in turn."""
        batch: dict[str, _Waiting] = {}
        while self._queues and len(batch) < self._max_articles:
            caller = next(iter(self._queues))
            queue = self._queues.pop(caller)
            pending, done = queue[0]
            # The second post of an id is a repeat or update of the first, which must be committed before.
            is_repeated = not done.done() and pending.article.id in batch
            if not is_repeated:
                queue.popleft()
                if not done.done():
                    batch[pending.article.id] = pending, done
            if queue:
                self._queues[caller] = queue
            if is_repeated:
                break
        return list(batch.values())

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
    """Fail all waiters and empty the list, whose futures must not refer to the frame of the error."""
    while waiters:
        if not (done := waiters.pop()).done():
            done.set_exception(error)
