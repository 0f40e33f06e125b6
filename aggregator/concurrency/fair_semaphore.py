"""Who is let in next, where few can work at once? The callers take turns, so that none waits for all that another sent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

# On whose behalf the work at hand is done: the id of a key, or "" where nobody is asked for one.
current_caller: ContextVar[str] = ContextVar("caller", default="")


class FairSemaphore:
    """``count`` places. Of those who wait, each caller's first is let in before anyone's second, and who has just left last.

    Of one caller, who came first goes first. For the tasks of one event loop.
    """

    def __init__(self, slots: int) -> None:
        self._free_slots = slots
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns

    def queued(self, caller: str) -> int:
        """How many of this caller wait."""
        return sum(not let_in.cancelled() for let_in in self._queues.get(caller, ()))

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Held for the ``CALLER`` of the task."""
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
        let_in = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(let_in)
        try:
            await let_in
        except asyncio.CancelledError:
            if not let_in.cancelled():  # it was let in at the same moment
                self._release(caller)
            raise

    def _release(self, caller: str) -> None:
        if caller in self._queues:  # it had its turn: behind all others
            self._queues[caller] = self._queues.pop(caller)
        while self._queues:
            following = next(iter(self._queues))
            queue = self._queues.pop(following)
            let_in = queue.popleft()
            if queue:
                self._queues[following] = queue
            if not let_in.cancelled():
                let_in.set_result(None)
                return
        self._free_slots += 1
