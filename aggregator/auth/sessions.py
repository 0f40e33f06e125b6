"""What keys are used for: sessions of browsers, and the times at which keys were last used.

session:<SHA-256 of the token>    id of the API key; the token is random
{access}used:<id>    ms since 1970 in digits, stored at most once per ``STEP_MS`` and process
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Sequence

from aggregator.errors import AggregatorError
from aggregator.store.base import Put, Store
from aggregator.time_units import HOUR_MS, MINUTE_MS

SESSION_TTL_MS = 12 * HOUR_MS
MAX_SECRET_CHARS = 200


class Sessions:
    """The sessions of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def start(self, key_id: str) -> str:
        """Start a session of a key; returns the token for the browser."""
        token = secrets.token_urlsafe(32)
        await self._store.put([Put(_store_key(token), key_id.encode(), SESSION_TTL_MS)])
        return token

    async def key_id(self, token: str) -> str:
        """Id of the key of a session; "" if it has ended."""
        return ((await self._store.read([_store_key(token)]))[0] or b"").decode()

    async def end(self, token: str) -> None:
        """End a session. Idempotent; an unknown token, which anybody can send, writes nothing."""
        key = _store_key(token)
        if (await self._store.read([key]))[0]:
            await self._store.put([Put(key, b"", 1)])


def hash_secret(secret: str) -> bytes:
    """SHA-256 of a secret, 32 bytes."""
    return hashlib.sha256(secret[:MAX_SECRET_CHARS].encode("utf-8", "replace")).digest()


def _store_key(token: str) -> bytes:
    return b"session:" + hash_secret(token).hex().encode()


STEP_MS = 10 * MINUTE_MS


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
            self._noted_ms.pop(id_, None)


def _key(id_: str) -> bytes:
    return b"{access}used:" + id_.encode()
