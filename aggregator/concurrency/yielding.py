"""Cooperative yielding to the event loop, and tasks that run in parallel with their caller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
GiveWay = Callable[[], Awaitable[None]]


class Begun(Protocol[T_co]):
    """Work that goes on by itself until somebody waits for it, or it is cancelled."""

    def __await__(self) -> Generator[Any, Any, T_co]: ...

    def cancel(self) -> object:
        """End it; what it has sent stays sent."""


class Begin(Protocol):
    def __call__(self, work: Coroutine[Any, Any, T], /) -> Begun[T]: ...


async def give_way() -> None:
    """Whatever else waits on the event loop has its turn."""
    await asyncio.sleep(0)


def in_a_task(work: Coroutine[Any, Any, T]) -> Begun[T]:
    """``Begin`` on the event loop. Whoever began it may go away without hearing how it ended."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return task
