"""Scheduling of bulk work behind interactive requests: yielding, priority gate, tasks, process priority.

Bulk work awaits ``yield_control`` after each step; while an interactive request is active, it pauses there
for at most ``MAX_WAIT_S``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

# About the duration of one interactive request without other load.
MAX_WAIT_S = 0.005
SLICE_S = 0.005

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
YieldControl = Callable[[], Awaitable[None]]


class TaskHandle(Protocol[T_co]):
    """A task that runs concurrently until it ends or is cancelled; awaiting it returns its result."""

    def __await__(self) -> Generator[Any, Any, T_co]:
        """Wait for the result."""

    def cancel(self) -> object:
        """Cancel the task; writes that it has already sent are not undone."""


class Spawn(Protocol):
    """Starts a coroutine as a task."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> TaskHandle[T]:
        """Start ``coroutine``."""


async def yield_control() -> None:
    """Let other tasks of the event loop run once."""
    await asyncio.sleep(0)


def spawn_task(coroutine: Coroutine[Any, Any, T]) -> TaskHandle[T]:
    """Run ``coroutine`` as a task of the event loop; its result may be ignored."""
    task = asyncio.ensure_future(coroutine)
    # Retrieve the exception, so that asyncio does not log it if the caller was cancelled.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return task


class PriorityGate:
    """Lets the bulk tasks of one event loop pause while interactive tasks are active."""

    def __init__(self) -> None:
        self._high_priority_count = 0
        self._waiters: set[asyncio.Future[None]] = set()

    @contextmanager
    def high_priority(self) -> Iterator[None]:
        """Mark the current task as interactive: bulk tasks pause until it leaves the context."""
        self._high_priority_count += 1
        try:
            yield
        finally:
            self._high_priority_count -= 1
            if not self._high_priority_count:
                for waiter in self._waiters:
                    _wake(waiter)

    async def yield_control(self) -> None:
        """Let other tasks run; returns when no interactive task is active, or after ``MAX_WAIT_S``."""
        if not self._high_priority_count:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        timeout = loop.call_later(MAX_WAIT_S, _wake, waiter)
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            timeout.cancel()
            self._waiters.discard(waiter)


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


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
