"""A small mapping under one key, changed by compare-and-set: watches, webhooks, access keys.

Few entries, read often, written by people: one value is read whole and replaced only while it is still the one
that was read, so two editors at once never overwrite each other's change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from aggregator.errors import Conflict, Contention, NotFound
from aggregator.store.base import Equals, Put, Store, Transaction
from aggregator.store.decoding import value_of

ATTEMPTS = 20

T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")


class Shelf(Generic[T]):
    """Values of type ``kind`` by id. ``noun`` names one in messages; ``limit``: most that are kept."""

    def __init__(self, store: Store, key: bytes, kind: type[T], noun: str, limit: int) -> None:
        self._store, self._key, self._noun, self._limit = store, key, noun, limit
        self._decoder = msgspec.msgpack.Decoder(dict[str, kind])  # type: ignore[valid-type]

    async def all(self) -> dict[str, T]:
        """Everything, in order of being put there. Raises StoreUnavailable."""
        return self._mapping((await self._store.read([self._key]))[0])

    async def values(self) -> list[T]:
        """Everything, oldest first. Raises StoreUnavailable."""
        return list((await self.all()).values())

    async def get(self, id_: str) -> T:
        """One value. Raises NotFound."""
        found = (await self.all()).get(id_)
        if found is None:
            raise self._unknown(id_)
        return found

    async def add(self, id_: str, value: T) -> None:
        """Put a value there. Raises Conflict when there are too many already."""

        def change(known: dict[str, T]) -> None:
            if id_ not in known and len(known) >= self._limit:
                raise Conflict(f"There are {self._limit} of the kind {self._noun} already; remove one first.")
            known[id_] = value

        await self.change(change)

    async def update(self, id_: str, change: Callable[[T], T]) -> T:
        """Replace one value by what ``change`` makes of it. Raises NotFound."""

        def apply(known: dict[str, T]) -> T:
            if id_ not in known:
                raise self._unknown(id_)
            known[id_] = change(known[id_])
            return known[id_]

        return await self.change(apply)

    async def remove(self, id_: str) -> None:
        """Take a value away. Raises NotFound."""

        def change(known: dict[str, T]) -> None:
            if known.pop(id_, None) is None:
                raise self._unknown(id_)

        await self.change(change)

    async def change(self, change: Callable[[dict[str, T]], R]) -> R:
        """Apply ``change`` to the mapping; it may be called again with what somebody else made of it meanwhile."""
        for _ in range(ATTEMPTS):
            raw = (await self._store.read([self._key]))[0]
            mapping = self._mapping(raw)
            result = change(mapping)
            new = msgspec.msgpack.encode(mapping)
            if new == raw or not await self._store.commit(
                Transaction((Equals(self._key, raw),), (Put(self._key, new),))
            ):
                return result
        raise Contention(f"Others kept changing what is known of the kind {self._noun}; try again.")

    def _mapping(self, raw: bytes | None) -> dict[str, T]:
        return value_of(self._decoder, raw, f"The list of the kind {self._noun}") if raw else {}

    def _unknown(self, id_: str) -> NotFound:
        return NotFound(f"There is no {self._noun} {id_[:200]!r}.")
