"""A process of ours and its parent: started with a pipe, ready when it says so, gone when the pipe closes.

Both ends watch that pipe, so a child whose parent vanished, even by SIGKILL, ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

# "spawn": a forked child would inherit the event loop's sockets and threads' locks.
_SPAWN = multiprocessing.get_context("spawn")
LEAVING_S = 1.0


class Child:
    """A process that runs ``target(*args, pipe)``; ``said``: what it sent when it was ready. Raises OSError at start."""

    def __init__(self, name: str, target: Callable[..., None], *args: Any) -> None:
        self.ready, self.ended = asyncio.Event(), asyncio.Event()
        self.said: Any = None
        self._pipe, theirs = _SPAWN.Pipe()
        with contextlib.closing(theirs):
            self.process = _SPAWN.Process(target=target, args=(*args, theirs), name=name)
            try:
                self.process.start()
            except BaseException:
                self._pipe.close()
                raise
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._heard)

    def _heard(self) -> None:
        try:
            self.said = self._pipe.recv()
        except (EOFError, OSError):
            self._hang_up()
            self.ended.set()
        else:
            self.ready.set()

    async def end(self, patience_s: float) -> None:
        """Ask, wait, insist. Idempotent."""
        await asyncio.to_thread(self._end, patience_s)
        self._hang_up()

    def _end(self, patience_s: float) -> None:
        if self.ended.is_set():  # it is about to end by itself, with an exit code of its own
            self.process.join(LEAVING_S)
        if self.process.is_alive():
            self.process.terminate()
        self.process.join(patience_s)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def _hang_up(self) -> None:
        if not self._pipe.closed:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._pipe.close()


async def first(*events: asyncio.Event) -> None:
    """Wait for any of them."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def stop_with_parent(pipe: Connection, stop: asyncio.Event) -> None:
    """In the child: ``stop`` is set when the parent is gone. The pipe is only ever readable at its end."""
    asyncio.get_running_loop().add_reader(pipe.fileno(), stop.set)
