"""Cooperative yielding to the event loop, and tasks that run in parallel with their caller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
YieldControl = Callable[[], Awaitable[None]]


class TaskHandle(Protocol[T_co]):
    """Work that goes on by itself until somebody waits for it, or it is cancelled."""

    def __await__(self) -> Generator[Any, Any, T_co]: ...

    def cancel(self) -> object:
        """End it; what it has sent stays sent."""


class Spawn(Protocol):
    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> TaskHandle[T]: ...


async def yield_control() -> None:
    """Whatever else waits on the event loop has its turn."""
    await asyncio.sleep(0)


def spawn_task(coroutine: Coroutine[Any, Any, T]) -> TaskHandle[T]:
    """``Begin`` on the event loop. Whoever began it may go away without hearing how it ended."""
    task = asyncio.ensure_future(coroutine)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return task
