"""A small mapping under one key, changed by compare-and-set: watches, webhooks, access keys.

Few entries, read often, written by people: one value is read whole and replaced only while it is still the one
that was read, so two editors at once never overwrite each other's change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from aggregator.errors import CommitConflict, Conflict, NotFound
from aggregator.store.base import Put, Store, Transaction, ValueEquals
from aggregator.store.decoding import decode_value

MAX_ATTEMPTS = 20

T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")


class VersionedMap(Generic[T]):
    """Values of type ``kind`` by id. ``noun`` names one in messages; ``limit``: most that are kept."""

    def __init__(
        self, store: Store, key: bytes, value_type: type[T], kind_name: str, max_entries: int
    ) -> None:
        self._store, self._key, self._kind_name, self._max_entries = store, key, kind_name, max_entries
        self._decoder = msgspec.msgpack.Decoder(dict[str, value_type])  # type: ignore[valid-type]

    async def all(self) -> dict[str, T]:
        """Everything, in order of being put there. Raises StoreUnavailable."""
        return self._decode((await self._store.read([self._key]))[0])

    async def values(self) -> list[T]:
        """Everything, oldest first. Raises StoreUnavailable."""
        return list((await self.all()).values())

    async def get(self, id_: str) -> T:
        """One value. Raises NotFound."""
        found = (await self.all()).get(id_)
        if found is None:
            raise self._not_found(id_)
        return found

    async def add(self, id_: str, value: T) -> None:
        """Put a value there. Raises Conflict when there are too many already."""

        def change(known: dict[str, T]) -> None:
            if id_ not in known and len(known) >= self._max_entries:
                raise Conflict(
                    f"There are {self._max_entries} of the kind {self._kind_name} already; remove one first."
                )
            known[id_] = value

        await self.mutate(change)

    async def update(self, id_: str, transform: Callable[[T], T]) -> T:
        """Replace one value by what ``change`` makes of it. Raises NotFound."""

        def apply(known: dict[str, T]) -> T:
            if id_ not in known:
                raise self._not_found(id_)
            known[id_] = transform(known[id_])
            return known[id_]

        return await self.mutate(apply)

    async def remove(self, id_: str) -> None:
        """Take a value away. Raises NotFound."""

        def change(known: dict[str, T]) -> None:
            if known.pop(id_, None) is None:
                raise self._not_found(id_)

        await self.mutate(change)

    async def mutate(self, mutation: Callable[[dict[str, T]], R]) -> R:
        """Apply ``change`` to the mapping; it may be called again with what somebody else made of it meanwhile."""
        for _ in range(MAX_ATTEMPTS):
            raw = (await self._store.read([self._key]))[0]
            mapping = self._decode(raw)
            result = mutation(mapping)
            new = msgspec.msgpack.encode(mapping)
            if new == raw or not await self._store.commit(
                Transaction((ValueEquals(self._key, raw),), (Put(self._key, new),))
            ):
                return result
        raise CommitConflict(f"Others kept changing what is known of the kind {self._kind_name}; try again.")

    def _decode(self, raw: bytes | None) -> dict[str, T]:
        return decode_value(self._decoder, raw, f"The list of the kind {self._kind_name}") if raw else {}

    def _not_found(self, id_: str) -> NotFound:
        return NotFound(f"There is no {self._kind_name} {id_[:200]!r}.")
