"""Bounded prefetching: prepares the next chunks of a batch while the current one is processed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

# Articles of a batch that are analyzed, looked up and committed together: enough to save round trips, few
# enough that an interactive request does not wait long for the store and for decoding the replies.
CHUNK_ARTICLES = 16
MAX_PREFETCHED_CHUNKS = 7

T = TypeVar("T")
U = TypeVar("U")


class Prefetcher(Generic[T, U]):
    """Async iterator over ``prepare(chunk)``, in order, for up to MAX_PREFETCHED_CHUNKS chunks at once.

    An error of the source is raised after the results of everything it yielded before.
    """

    def __init__(
        self,
        source: AsyncIterator[Sequence[T]],
        chunk_size: int,
        prepare: Callable[[Sequence[T]], Coroutine[Any, Any, U]],
    ) -> None:
        self._source = source
        self._chunk_size = chunk_size
        self._prepare = prepare
        self._ready: asyncio.Queue[asyncio.Task[U] | None] = asyncio.Queue(MAX_PREFETCHED_CHUNKS)
        self._peeked: list[asyncio.Task[U] | None] = []  # at most one that was taken before it was done
        self._preparing: set[asyncio.Task[U]] = set()
        self._reader = asyncio.create_task(self._fill())

    def __aiter__(self) -> AsyncIterator[U]:
        return self

    async def __anext__(self) -> U:
        ready = self._peeked.pop() if self._peeked else await self._ready.get()
        if ready is None:
            await self._reader
            raise StopAsyncIteration
        return await ready

    def take_ready(self) -> list[U]:
        """The next results that are available without waiting: chunks processed together finish sooner."""
        found: list[U] = []
        while not self._peeked and not self._ready.empty():
            ready = self._ready.get_nowait()
            if ready is None or not ready.done() or ready.cancelled() or ready.exception() is not None:
                self._peeked.append(ready)
            else:
                found.append(ready.result())
        return found

    async def close(self) -> None:
        """Stop reading and preparing. Idempotent."""
        tasks = [self._reader, *self._preparing]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fill(self) -> None:
        try:
            async for items in self._source:
                for start in range(0, len(items), self._chunk_size):
                    task = asyncio.create_task(self._prepare(items[start : start + self._chunk_size]))
                    self._preparing.add(task)
                    task.add_done_callback(self._preparing.discard)
                    await self._ready.put(task)
        finally:
            if not _is_being_cancelled():
                await self._ready.put(None)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
