"""Optimistically locked map in one store value: desks, webhook subscriptions, API keys.

For few entries that are read often and written by people: the whole map is read, changed and written back
only if the stored value is still the one that was read, so concurrent changes never overwrite each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from aggregator.errors import Conflict, NotFound
from aggregator.store.base import Store
from aggregator.store.optimistic import StoredValue, ValueFormat

T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")


class VersionedMap(Generic[T]):
    """Up to ``max_entries`` values of ``value_type`` by id; ``kind_name`` names an entry in messages."""

    def __init__(
        self, store: Store, key: bytes, value_type: type[T], kind_name: str, max_entries: int
    ) -> None:
        self._kind_name, self._max_entries = kind_name, max_entries
        decoder = msgspec.msgpack.Decoder(dict[str, value_type])  # type: ignore[valid-type]
        self._map = StoredValue(store, key, ValueFormat(decoder, f"The list of the kind {kind_name}", dict))

    async def all(self) -> dict[str, T]:
        """All entries in insertion order. Raises StoreUnavailable."""
        return await self._map.read()

    async def values(self) -> list[T]:
        """All values, oldest first. Raises StoreUnavailable."""
        return list((await self.all()).values())

    async def get(self, id_: str) -> T:
        """The value of an id. Raises NotFound."""
        found = (await self.all()).get(id_)
        if found is None:
            raise self._not_found(id_)
        return found

    async def add(self, id_: str, value: T) -> None:
        """Insert or replace a value. Raises Conflict if the map is full."""

        def insert(known: dict[str, T]) -> None:
            if id_ not in known:
                self.check_space(known)
            known[id_] = value

        await self.mutate(insert)

    async def add_once(
        self, id_: str, value: T, is_same: Callable[[T, T], bool], owner_of: Callable[[T], str]
    ) -> tuple[T, bool]:
        """Insert a value unless its content exists; return what is stored and whether it is new.

        A request that is repeated after a lost answer, also at the same moment, so inserts one value.
        ``is_same(stored, value)`` compares contents. ``owner_of`` returns who created a value ("": unknown);
        an owner may create half of the entries. Raises Conflict beyond that, and if the map is full.
        """

        def insert(known: dict[str, T]) -> tuple[T, bool]:
            for stored in known.values():
                if is_same(stored, value):
                    return stored, False
            owner = owner_of(value)
            share = self._max_entries // 2
            if owner and sum(owner_of(stored) == owner for stored in known.values()) >= share:
                raise Conflict(
                    f"This key has created {share} of the kind {self._kind_name}, its share (half of the "
                    f"limit of {self._max_entries}); delete one of them first."
                )
            self.check_space(known)
            known[id_] = value
            return value, True

        return await self.mutate(insert)

    async def update(self, id_: str, transform: Callable[[T], T]) -> T:
        """Replace the value of an id by ``transform(value)`` and return it. Raises NotFound."""

        def apply(known: dict[str, T]) -> T:
            if id_ not in known:
                raise self._not_found(id_)
            known[id_] = transform(known[id_])
            return known[id_]

        return await self.mutate(apply)

    async def remove(self, id_: str) -> None:
        """Remove the value of an id. Raises NotFound."""

        def delete(known: dict[str, T]) -> None:
            if known.pop(id_, None) is None:
                raise self._not_found(id_)

        await self.mutate(delete)

    async def mutate(self, mutation: Callable[[dict[str, T]], R]) -> R:
        """Apply ``mutation`` to the map in place and return its result; it is called again after a conflict.

        Raises CommitConflict when other writers kept changing the map.
        """

        def change(known: dict[str, T]) -> tuple[dict[str, T], R]:
            changed = dict(known)
            result = mutation(changed)
            return changed, result

        return await self._map.edit_with_result(change)

    def check_space(self, known: dict[str, T]) -> None:
        """Raise Conflict if the map is full."""
        if len(known) >= self._max_entries:
            raise Conflict(
                f"There are {self._max_entries} of the kind {self._kind_name} already, the limit; "
                "delete one first."
            )

    def _not_found(self, id_: str) -> NotFound:
        return NotFound(f"There is no {self._kind_name} {id_[:200]!r}.")
