"""Cache of one rendered page per view, so that many open readers cost one rendering per change.

Every open page is fetched again every few seconds, and by all its readers at once when an event changes.
Reading and rendering it takes milliseconds of CPU, which one request spends for all others.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

MAX_VIEWS = 64


class RenderCache:
    """The last page of each of up to MAX_VIEWS views; the least recently used ones are dropped."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, tuple[Hashable, asyncio.Task[bytes]]] = OrderedDict()

    async def get(
        self, view: Hashable, version: Hashable, render: Callable[[], Coroutine[Any, Any, bytes]]
    ) -> bytes:
        """The page of a view, rendered unless the one that is stored has this version.

        ``version`` stands for all that the page depends on. Raises what ``render`` raises, and forgets it.
        """
        known, task = self._pages.get(view, (None, None))
        if task is None or known != version or (task.done() and (task.cancelled() or task.exception())):
            task = asyncio.create_task(render())
            self._pages[view] = version, task
        self._pages.move_to_end(view)
        while len(self._pages) > MAX_VIEWS:
            self._pages.popitem(last=False)
        return await asyncio.shield(task)
