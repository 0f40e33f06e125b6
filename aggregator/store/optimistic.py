"""Optimistic concurrency control: read, compute, commit conditionally, retry on a conflict.

``StoredValue`` is one value under one key; ``VersionedMap`` is a map in one value, for few entries that are
read often and written by people (desks, webhook subscriptions, API keys). An edit is committed only if the
stored value is still the one that was read, so concurrent edits never overwrite each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from aggregator.errors import CommitConflict, Conflict, NotFound
from aggregator.store.base import Put, Store, Transaction, ValueEquals, Write
from aggregator.store.decoding import Decoder, decode_formatted

MAX_COMMIT_ATTEMPTS = 20
T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S", bound=msgspec.Struct)


def commit_attempts(message: str, limit: int = MAX_COMMIT_ATTEMPTS) -> Iterator[int]:
    """Attempts of a loop that leaves it after its commit; raises CommitConflict after ``limit`` of them."""
    yield from range(limit)
    raise CommitConflict(message)


class ValueFormat(Generic[T]):
    """How one kind of value is stored: MessagePack, behind a version byte if ``version`` is given.

    ``kind_name`` names the value in messages ("The read mark"); ``absent`` makes what a missing key reads as.
    """

    def __init__(
        self, decoder: Decoder[T], kind_name: str, absent: Callable[[], T], version: bytes = b""
    ) -> None:
        self.kind_name, self.absent = kind_name, absent
        self._decoder, self._version = decoder, version

    def encode(self, value: T) -> bytes:
        """The stored form of a value."""
        return self._version + msgspec.msgpack.encode(value)

    def decode(self, raw: bytes | None) -> T:
        """The value of a key. Raises DamagedValue, StoreUnavailable if it has another version."""
        if raw is None:
            return self.absent()
        return decode_formatted(self._decoder, raw, self.kind_name, self._version)


class StoredValue(Generic[T]):
    """One value under one key, which any number of processes read and edit.

    ``ttl_ms`` returns the time to live of a value (None: no expiry). Every method may raise StoreUnavailable
    and DamagedValue; after StoreUnavailable an edit may have been committed.
    """

    def __init__(
        self,
        store: Store,
        key: bytes,
        value_format: ValueFormat[T],
        ttl_ms: Callable[[T], int | None] = lambda _: None,
    ) -> None:
        self.key = key
        self._store, self._format, self._ttl_ms = store, value_format, ttl_ms

    async def read(self) -> T:
        """The value now."""
        return (await self.read_with_raw())[1]

    async def read_with_raw(self) -> tuple[bytes | None, T]:
        """The stored bytes, which ``replace`` compares with, and the value."""
        raw = (await self._store.read([self.key]))[0]
        return raw, self._format.decode(raw)

    async def replace(self, raw: bytes | None, value: T, writes: Sequence[Write] = ()) -> bool:
        """Store ``value``, and apply ``writes`` of the same tag, if ``raw`` is still stored; else False."""
        put = Put(self.key, self._format.encode(value), self._ttl_ms(value))
        return not await self._store.commit(Transaction((ValueEquals(self.key, raw),), (put, *writes)))

    async def edit(self, change: Callable[[T], T]) -> T:
        """Replace the value by ``change(value)`` and return it. Raises CommitConflict.

        ``change`` must not modify its argument. It is called again after a conflict; an equal value is not
        written.
        """
        return await self.edit_with_result(lambda value: (changed := change(value), changed))

    async def edit_with_result(
        self, change: Callable[[T], tuple[T, R]], attempts: int = MAX_COMMIT_ATTEMPTS
    ) -> R:
        """As ``edit``; ``change`` returns the new value and the result of this call."""
        for _ in range(attempts):
            raw, value = await self.read_with_raw()
            changed, result = change(value)
            if changed == value or await self.replace(raw, changed):
                return result
        raise CommitConflict(f"{self._format.kind_name} kept changing; try again.")


class VersionedMap(Generic[S]):
    """Up to ``max_entries`` values of ``value_type`` by id; ``kind_name`` names an entry in messages."""

    def __init__(
        self, store: Store, key: bytes, value_type: type[S], kind_name: str, max_entries: int
    ) -> None:
        self._kind_name, self._max_entries = kind_name, max_entries
        decoder = msgspec.msgpack.Decoder(dict[str, value_type])  # type: ignore[valid-type]
        self._map = StoredValue(store, key, ValueFormat(decoder, f"The list of the kind {kind_name}", dict))

    async def all(self) -> dict[str, S]:
        """All entries in insertion order."""
        return await self._map.read()

    async def values(self) -> list[S]:
        """All values, oldest first."""
        return list((await self.all()).values())

    async def get(self, id_: str) -> S:
        """The value of an id. Raises NotFound."""
        return self._require(await self.all(), id_)

    async def add_once(
        self, id_: str, value: S, is_same: Callable[[S, S], bool], owner_of: Callable[[S], str]
    ) -> tuple[S, bool]:
        """Insert a value unless its content exists; return what is stored and whether it is new.

        A request that is repeated after a lost answer so inserts one value. ``is_same(stored, value)``
        compares contents. ``owner_of`` returns who created a value ("": unknown); an owner may create half of
        the entries. Raises Conflict beyond that, and if the map is full.
        """

        def insert(known: dict[str, S]) -> tuple[S, bool]:
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

    async def update(self, id_: str, transform: Callable[[S], S]) -> S:
        """Replace the value of an id by ``transform(value)`` and return it. Raises NotFound."""

        def apply(known: dict[str, S]) -> S:
            known[id_] = transform(self._require(known, id_))
            return known[id_]

        return await self.mutate(apply)

    async def remove(self, id_: str) -> None:
        """Remove the value of an id. Raises NotFound."""

        def delete(known: dict[str, S]) -> None:
            self._require(known, id_)
            del known[id_]

        await self.mutate(delete)

    async def mutate(self, mutation: Callable[[dict[str, S]], R]) -> R:
        """Apply ``mutation`` to the map in place, also after a conflict. Raises CommitConflict."""
        return await self._map.edit_with_result(lambda known: (new := dict(known), mutation(new)))

    def check_space(self, known: dict[str, S]) -> None:
        """Raise Conflict if the map is full."""
        if len(known) >= self._max_entries:
            raise Conflict(
                f"There are {self._max_entries} of the kind {self._kind_name} already, the limit; "
                "delete one first."
            )

    def _require(self, known: dict[str, S], id_: str) -> S:
        if id_ not in known:
            raise NotFound(f"There is no {self._kind_name} {id_[:200]!r}.")
        return known[id_]
