"""Pending articles: their state between arrival and answer, and the batches in which they are processed.

``PendingArticle`` lives as long as the request and keeps the article's number and record across retries.
``CommitPlan`` is the immutable decision of one attempt. ``service.py`` describes the steps in between.

**Micro-batching.** Interactive articles that arrive while a batch is processed form the next batch; one that
arrives alone starts immediately. One batch runs at a time, so the articles of one process do not conflict
with each other. Callers are served round-robin. A batch runs in a separate task: a cancelled caller
interrupts no write, and its article is dropped if its batch has not started.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from aggregator import tracing
from aggregator.concurrency import current_caller
from aggregator.dedup.policy import NamedPolicy
from aggregator.domain import Analysis, Answer, Article, ArticleRecord
from aggregator.errors import AggregatorError
from aggregator.index.bindings import BindingSnapshot
from aggregator.store.base import Transaction


@dataclass(slots=True, eq=False)
class PendingArticle:
    """An article with its analysis; ``position`` is its index in the request.

    ``number`` and ``first_version`` are those of its record (0: not assigned), which is stored if
    ``record_written``: a retry after a conflict writes no second record unless its contents differ.
    ``sources``: those whose articles alone the caller may replace; () for all. ``policy`` is selected once,
    so that a retry decides by the same. ``origin``: the span of its request.
    """

    position: int
    article: Article
    analysis: Analysis
    number: int = 0
    first_version: int = 0
    record_written: bool = False
    answer: Answer | AggregatorError | None = None
    sources: tuple[str, ...] = ()
    policy: NamedPolicy = field(default_factory=NamedPolicy)
    origin: object = field(default_factory=tracing.current)


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The decision on one article, and everything its commit needs.

    ``transaction`` is None for a repeat, ``record`` for a repeat whose record has expired.
    ``older_versions``: bindings in other languages, to be removed. ``duplicate_groups``: first numbers, own
    group first.
    """

    pending: PendingArticle
    answer: Answer
    transaction: Transaction | None
    record: ArticleRecord | None
    latest_number: int
    superseded_number: int | None
    older_versions: tuple[BindingSnapshot, ...]
    duplicate_groups: tuple[int, ...]


def split_batches(pending: Sequence[PendingArticle], size: int) -> Iterator[list[PendingArticle]]:
    """Split into batches of at most ``size`` articles, in order and without a repeated id in one batch."""
    batch: dict[str, PendingArticle] = {}
    for item in pending:
        if len(batch) == size or item.article.id in batch:
            yield list(batch.values())
            batch = {}
        batch[item.article.id] = item
    if batch:
        yield list(batch.values())


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
