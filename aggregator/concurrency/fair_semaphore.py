"""Fair semaphore: a concurrency limit whose free slots go round-robin to the callers that wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

# The caller that the current task works for: the id of an API key, or the address of a client without one.
current_caller: ContextVar[str] = ContextVar("caller", default="")


class FairSemaphore:
    """Slots for tasks: free ones go round-robin over the callers, per caller first in, first out."""

    def __init__(self, slots: int) -> None:
        self._free_slots = slots
        self._queues: dict[
            str, deque[asyncio.Future[None]]
        ] = {}  # waiting tasks; the next caller to serve is first

    def queued(self, caller: str) -> int:
        """Number of waiting tasks of a caller."""
        return sum(not waiter.cancelled() for waiter in self._queues.get(caller, ()))

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
