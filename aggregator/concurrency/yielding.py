"""Cooperative yielding to the event loop, and tasks that run in parallel with their caller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar

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
