"""What comes next is prepared while what came before is answered: a step of a pipeline.

The lines of a batch are read, decoded and analysed (in other processes, if there are any) while those before
them are looked up and committed, a few chunks ahead and no more: who takes slowly also makes the reading slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

# Lines that are analysed together, and looked up and committed together: enough to spare round trips, few enough that a
# single article which comes in between does not wait long for the store and for the reading of its answers.
CHUNK_LINES = 16
MAX_PREFETCHED_CHUNKS = 7

T = TypeVar("T")
U = TypeVar("U")


class Prefetcher(Generic[T, U]):
    """Iterates over ``prepare(chunk)`` in the order of the chunks, each of at most ``size`` of what ``source`` gives.

    ``prepare`` runs for up to ``AHEAD`` chunks at once. A failure of the source is raised behind what came before it.
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
        self._peeked: list[asyncio.Task[U] | None] = []  # at most one, that was not at hand yet
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
        """What comes next and is prepared already: many chunks together are answered faster than one by one."""
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
            async for given in self._source:
                for start in range(0, len(given), self._chunk_size):
                    task = asyncio.create_task(self._prepare(given[start : start + self._chunk_size]))
                    self._preparing.add(task)
                    task.add_done_callback(self._preparing.discard)
                    await self._ready.put(task)
        finally:
            if not _is_being_cancelled():
                await self._ready.put(None)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
