"""Optimistic concurrency control: read, compute, commit conditionally, retry on a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from aggregator.errors import CommitConflict, StoreUnavailable
from aggregator.store.base import Put, Store, Transaction, ValueEquals, Write
from aggregator.store.decoding import Decoder, decode_value

MAX_COMMIT_ATTEMPTS = 20
T = TypeVar("T")
R = TypeVar("R")


def commit_attempts(message: str, limit: int = MAX_COMMIT_ATTEMPTS) -> Iterator[int]:
    """Attempt numbers from 0; raises CommitConflict with ``message`` after ``limit`` attempts.

    For changes of more than one value (``StoredValue`` changes one). The loop body returns or breaks when its
    commit succeeded. The message is one sentence for the caller of the operation.
    """
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
        if not raw.startswith(self._version):
            raise StoreUnavailable(
                f"{self.kind_name} in the store has format {raw[:1].hex() or 'none'}, this version reads "
                f"{self._version.hex()}: run the version that wrote it, or reindex."
            )
        return decode_value(self._decoder, raw[len(self._version) :], self.kind_name)


class StoredValue(Generic[T]):
    """One value under one key, which any number of processes read and edit.

    An edit is committed only if the stored value is still the one that was read, and otherwise repeated on
    the new one, so concurrent edits never overwrite each other. ``ttl_ms`` returns the time to live of a
    value (None: no expiry). Every method may raise StoreUnavailable and DamagedValue; after StoreUnavailable
    an edit may have been committed.
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
        """The value."""
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

        def with_itself(value: T) -> tuple[T, T]:
            changed = change(value)
            return changed, changed

        return await self.edit_with_result(with_itself)

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
