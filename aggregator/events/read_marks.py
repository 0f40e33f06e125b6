"""Read marks: the events that a user (API key) has looked at.

read:<user>   a ``ReadMark``, at most 20 kB; expires 90 days after its last change
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from aggregator.store.base import Store
from aggregator.store.optimistic import StoredValue, ValueFormat
from aggregator.time_units import DAY_MS

MAX_SEEN = 200
MARK_RETENTION_MS = 90 * DAY_MS


class ReadMark(msgspec.Struct, frozen=True):
    """Events detected until ``looked_ms`` are seen, and those in ``seen`` (the last MAX_SEEN)."""

    looked_ms: int = 0
    seen: tuple[str, ...] = ()

    def advanced(self, looked_ms: int, seen: Sequence[str]) -> ReadMark:
        """With more events seen. Repeating it or changing the order of two changes has no effect."""
        return ReadMark(max(self.looked_ms, looked_ms), tuple(dict.fromkeys((*self.seen, *seen)))[-MAX_SEEN:])


_MARK_FORMAT = ValueFormat(msgspec.msgpack.Decoder(ReadMark), "The read mark", ReadMark)


class ReadMarks:
    """The read marks of all users of a store. ``user``: id of the API key."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, user: str) -> ReadMark:
        """The mark of a user. Raises StoreUnavailable."""
        return await self._mark(user).read()

    async def advance(self, user: str, looked_ms: int, seen: Sequence[str]) -> ReadMark:
        """Add to the mark of a user and return it. Raises CommitConflict, StoreUnavailable."""
        return await self._mark(user).edit(lambda mark: mark.advanced(looked_ms, seen))

    def _mark(self, user: str) -> StoredValue[ReadMark]:
        return StoredValue(self._store, b"read:" + user.encode(), _MARK_FORMAT, lambda _: MARK_RETENTION_MS)
