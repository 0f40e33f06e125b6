"""Who is let in next, where few can work at once? The callers take turns, so that none waits for all that another sent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

# On whose behalf the work at hand is done: the id of a key, or "" where nobody is asked for one.
CALLER: ContextVar[str] = ContextVar("caller", default="")


class Places:
    """``count`` places. Of those who wait, each caller's first is let in before anyone's second, and who has just left last.

    Of one caller, who came first goes first. For the tasks of one event loop.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns

    def waiting(self, caller: str) -> int:
        """How many of this caller wait."""
        return sum(not let_in.cancelled() for let_in in self._waiting.get(caller, ()))

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Held for the ``CALLER`` of the task."""
        caller = CALLER.get()
        await self._enter(caller)
        try:
            yield
        finally:
            self._leave(caller)

    async def _enter(self, caller: str) -> None:
        if self._free:
            self._free -= 1
            return
        let_in = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(let_in)
        try:
            await let_in
        except asyncio.CancelledError:
            if not let_in.cancelled():  # it was let in at the same moment
                self._leave(caller)
            raise

    def _leave(self, caller: str) -> None:
        if caller in self._waiting:  # it had its turn: behind all others
            self._waiting[caller] = self._waiting.pop(caller)
        while self._waiting:
            following = next(iter(self._waiting))
            queue = self._waiting.pop(following)
            let_in = queue.popleft()
            if queue:
                self._waiting[following] = queue
            if not let_in.cancelled():
                let_in.set_result(None)
                return
        self._free += 1
