"""Times at which API keys were last used, stored at most once per ``STEP_MS`` and process, in the background.

{access}used:<id>    ms since 1970 in digits; absent: never used since this is recorded
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from aggregator.errors import AggregatorError
from aggregator.store.base import Put, Store
from aggregator.time_units import MINUTE_MS

STEP_MS = 10 * MINUTE_MS
_PREFIX = b"{access}used:"


class LastUse:
    """Last use of the keys of one store, as seen by this process. ``clock``: wall clock in ms."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store, self._clock = store, clock
        self._noted_ms: dict[str, int] = {}
        self._writes: set[asyncio.Task[None]] = set()

    def note(self, id_: str) -> None:
        """The key with this id, which exists, is used now."""
        now_ms = self._clock()
        if 0 <= now_ms - self._noted_ms.get(id_, -STEP_MS) < STEP_MS:
            return
        self._noted_ms[id_] = now_ms
        task = asyncio.create_task(self._write(id_, now_ms))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def finish(self) -> None:
        """Wait until the uses that were noted are stored."""
        await asyncio.gather(*self._writes)

    async def read(self, ids: Sequence[str]) -> list[int | None]:
        """When each key was last used; None: not since this is recorded."""
        values = await self._store.read([_key(id_) for id_ in ids])
        return [int(value) if value is not None and value.isdigit() else None for value in values]

    async def forget(self, id_: str) -> None:
        """Remove what is known of a key that no longer exists."""
        self._noted_ms.pop(id_, None)
        await self._store.delete([_key(id_)])

    async def _write(self, id_: str, now_ms: int) -> None:
        try:
            await self._store.put([Put(_key(id_), b"%d" % now_ms)])
        except AggregatorError:
            with contextlib.suppress(KeyError):
                del self._noted_ms[id_]


def _key(id_: str) -> bytes:
    return _PREFIX + id_.encode()
