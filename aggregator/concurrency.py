"""Scheduling in one process: fair limits, time slices, bounded prefetching."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

SLICE_S = 0.005
# Articles of a batch that are analyzed, looked up and committed together: enough to save round trips, few
# enough that an interactive request does not wait long for the store and for decoding the replies.
CHUNK_ARTICLES = 16
MAX_PREFETCHED_CHUNKS = 7
# The caller that the current task works for: the id of an API key, or the address of a client without one.
current_caller: ContextVar[str] = ContextVar("caller", default="")

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)
YieldControl = Callable[[], Awaitable[None]]


class TaskHandle(Protocol[T_co]):
    """A task that runs concurrently until it ends or is cancelled; awaiting it returns its result."""

    def __await__(self) -> Generator[Any, Any, T_co]:
        """Wait for the result."""

    def cancel(self) -> object:
        """Cancel the task; writes that it has already sent are not undone."""


Spawn = Callable[[Coroutine[Any, Any, Any]], TaskHandle[Any]]  # starts a coroutine as a task


async def yield_control() -> None:
    """Let other tasks of the event loop run once."""
    await asyncio.sleep(0)


def spawn_task(coroutine: Coroutine[Any, Any, T]) -> TaskHandle[T]:
    """Run ``coroutine`` as a task of the event loop; its result may be ignored."""
    task = asyncio.ensure_future(coroutine)
    # Retrieve the exception, so that asyncio does not log it if the caller was cancelled.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return task


class TimeSlicer:
    """Yields to the event loop once per ``SLICE_S``, for a process without interactive requests."""

    def __init__(self, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._slice_end_s = 0.0

    async def yield_control(self) -> None:
        """Let other tasks run if the time slice has ended; yielding takes longer than many a step."""
        if self._clock_s() >= self._slice_end_s:
            await asyncio.sleep(0)
            self._slice_end_s = self._clock_s() + SLICE_S


def lower_priority(nice_increment: int) -> None:
    """Raise the nice value of this process and its future children, where a seccomp filter permits it."""
    with contextlib.suppress(AttributeError, OSError):
        os.nice(nice_increment)


class FairSemaphore:
    """Slots for tasks: free ones go round-robin over the callers, per caller first in, first out."""

    def __init__(self, slots: int) -> None:
        self._free_slots = slots
        # Waiting tasks; the next caller to serve is first.
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot on behalf of ``current_caller``; waits for a free one."""
        caller = current_caller.get()
        await self._acquire(caller)
        try:
            yield
        finally:
            self._release(caller)

    async def _acquire(self, caller: str) -> None:
        if self._free_slots:
            self._free_slots -= 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():  # it got a slot just before the cancellation
                self._release(caller)
            raise

    def _release(self, caller: str) -> None:
        # The caller may have taken this slot without waiting: its turn ends, so it goes behind all others.
        if caller in self._queues:
            self._queues[caller] = self._queues.pop(caller)
        while self._queues:
            next_caller = next(iter(self._queues))
            queue = self._queues.pop(next_caller)
            waiter = queue.popleft()
            if queue:
                self._queues[next_caller] = queue
            if not waiter.cancelled():
                waiter.set_result(None)
                return
        self._free_slots += 1


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
            current = asyncio.current_task()
            if current is None or not current.cancelling():
                await self._ready.put(None)
