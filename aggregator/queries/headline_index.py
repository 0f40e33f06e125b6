"""Headline index of this process: the headlines of stored articles, in memory.

Nothing is read before the first search. That search reads the newest articles; a task then reads the older
ones, newest first, from the article stream and, beyond its retention, the postings. Each search reads what
was committed since.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress

from aggregator.domain import StreamItem, arrival_ms_of
from aggregator.errors import StoreUnavailable
from aggregator.index import Index
from aggregator.index.codec.postings import newest_missing
from aggregator.queries.headline_table import HeadlineTable

FIRST_ARTICLES = 1000  # articles per space that the first search waits for: about 0.1 s
FIRST_PATIENCE_S = 1.0
BATCH_ARTICLES = 200
CATCH_UP_BATCHES = 5
FOLLOW_INTERVAL_S = 2.0
# Pause after each batch of older articles: loading takes at most about a third of one processor.
LOAD_PAUSE_S = 0.02
DEFAULT_MAX_ROWS = 1_000_000

log = logging.getLogger(__name__)


class HeadlineIndex:
    """The headline table of an index, and the task that keeps it current. ``max_rows``: see the table."""

    def __init__(self, index: Index, max_rows: int = DEFAULT_MAX_ROWS) -> None:
        self.table = HeadlineTable(max_rows)
        self.loaded = asyncio.Event()  # older articles have been read
        self._index = index
        self._stream = index.stream
        self._is_stream_read = False
        self._newest: dict[bytes, bytes] | None = None
        self._oldest: dict[bytes, bytes] = {}
        self._lock = asyncio.Lock()
        self._load_lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def since_ms(self) -> int | None:
        """Arrival of the oldest article that was read, in ms since 1970 UTC; None without any."""
        oldest = self.table.oldest_number
        return arrival_ms_of(oldest) if oldest is not None else None

    async def catch_up(self) -> None:
        """Read what was committed since the last call, at most ``CATCH_UP_BATCHES`` batches."""
        async with self._lock:
            if self._newest is None:
                items, positions = await self._stream.read_older(None, 1)
                await self._add(items)
                self._newest, self._oldest = positions, positions
                await self._read_older(FIRST_ARTICLES)
            for _ in range(CATCH_UP_BATCHES):
                if not await self._read_newer():
                    break
        if self._task is None:
            self._task = asyncio.create_task(self._run())
            with suppress(TimeoutError):  # of a small store the first search has everything
                await asyncio.wait_for(self.loaded.wait(), FIRST_PATIENCE_S)

    async def close(self) -> None:
        """End the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        await self._retry(lambda: self._load_older(LOAD_PAUSE_S))
        while True:
            await asyncio.sleep(FOLLOW_INTERVAL_S)
            await self._retry(self._follow)

    async def _follow(self) -> None:
        is_behind = True
        while is_behind:
            async with self._lock:
                is_behind = await self._read_newer()

    async def _load_older(self, pause_s: float) -> None:
        async with self._load_lock:
            while not self._is_stream_read and not self.table.is_full:
                async with self._lock:
                    await self._read_older(BATCH_ARTICLES)
                await asyncio.sleep(pause_s)
            if not self.loaded.is_set():
                async for items in self._archived():
                    await self._add(items)
                    await asyncio.sleep(pause_s)
            self.loaded.set()

    async def _archived(self) -> AsyncIterator[list[StreamItem]]:
        """The articles that the table lacks, in batches, newest first; until the table is full."""
        archive, known = self._index.articles, self.table.numbers()
        spaces = self._index.spaces
        parts = [await archive.numbers(space) for space in spaces]
        numbers, owners = await asyncio.to_thread(newest_missing, parts, known)
        for at in range(0, len(numbers), BATCH_ARTICLES):
            if self.table.is_full:
                return
            batch = slice(at, at + BATCH_ARTICLES)
            for i, space in enumerate(spaces):
                if own := numbers[batch][owners[batch] == i].tolist():
                    yield await archive.load_items(space, own)

    async def _retry(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await step()
            except StoreUnavailable as error:
                log.warning("search does not see the newest articles: %s", error)
            await asyncio.sleep(FOLLOW_INTERVAL_S)

    async def _read_newer(self) -> bool:
        """Read one batch; whether there may be more."""
        items, newest = await self._stream.read(self._newest or {}, BATCH_ARTICLES, with_story_terms=False)
        await self._add(items)
        self._newest = newest
        return len(items) >= BATCH_ARTICLES

    async def _read_older(self, count: int) -> None:
        while count > 0 and not self._is_stream_read:
            items, oldest = await self._stream.read_older(self._oldest, min(count, BATCH_ARTICLES))
            await self._add(items)
            self._oldest = oldest
            self._is_stream_read = not items
            count -= BATCH_ARTICLES

    async def _add(self, items: Iterable[StreamItem]) -> None:
        for at, item in enumerate(items):
            if item.kind == "deleted":
                self.table.remove([item.number])
            elif item.space:  # else its record is gone
                self.table.add(item)
            if at % 50 == 49:
                await asyncio.sleep(0)
