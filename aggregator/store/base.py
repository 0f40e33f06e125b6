"""The contract of a store: bytes under keys, read together, changed together or not at all.

``memory.MemoryStore`` and ``redis.RedisStore`` implement it; everything about articles, buckets and
verdicts lives above it (``index/``), once. What all implementations promise:

* **Keys carry a tag**: ``{tag}rest``. Keys of one tag are read at one instant and changed
  atomically (on a cluster: one slot). Keys without braces stand alone.
* ``commit`` is compare-and-write: every check holds and all writes are applied, or nothing
  changes and the caller learns which checks failed. A crash leaves all of it or none of it.
* A write may have happened when ``StoreUnavailable`` is raised; every write of the layers above is
  therefore idempotent, or guarded by a check that makes its repetition fail.
* The only errors raised are ``StoreUnavailable`` (try again later) and ``ConfigurationError``
  (at ``check``). Times to live are in ms; ``None`` means for ever, anything below 1 counts as 1.
* Safe for any number of tasks of one event loop.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import msgspec


class LengthEquals(msgspec.Struct, frozen=True, gc=False):
    """Holds while ``key`` is ``length`` bytes long (0: absent). Only for keys that grow by Append."""

    key: bytes
    length: int


class LengthsUnchanged(msgspec.Struct, frozen=True, gc=False):
    """``Length`` of many keys at once, as one check: each is as long as its value was. ``key`` is the first of them.

    It takes the values, since most checks are never sent (``Transaction.given``).
    """

    keys: tuple[bytes, ...]
    values: tuple[bytes | None, ...]

    @property
    def lengths(self) -> list[int]:
        """In the order of ``keys``."""
        return [len(value) if value else 0 for value in self.values]

    @property
    def key(self) -> bytes:
        """One of its keys: all have the same tag."""
        return self.keys[0]


class ValueEquals(msgspec.Struct, frozen=True, gc=False):
    """Holds while ``key`` has exactly this value (None: absent)."""

    key: bytes
    value: bytes | None


class Append(msgspec.Struct, frozen=True, gc=False):
    """Append ``value`` to ``key``; skipped when it would make it longer than ``limit`` (0: no limit)."""

    key: bytes
    value: bytes
    max_bytes: int = 0


class AppendMany(msgspec.Struct, frozen=True, gc=False):
    """``Append`` of many keys at once, as one write: an article stands in a dozen buckets."""

    keys: tuple[bytes, ...]
    values: tuple[bytes, ...]
    max_bytes: int = 0

    @property
    def key(self) -> bytes:
        """One of its keys: all have the same tag."""
        return self.keys[0]


class AppendCapped(msgspec.Struct, frozen=True, gc=False):
    """Append each of ``values`` to its key, of which at least the newest ``keep`` bytes stay, at most twice as many."""

    keys: tuple[bytes, ...]
    values: tuple[bytes, ...]
    keep_bytes: int

    @property
    def key(self) -> bytes:
        """One of its keys: all have the same tag."""
        return self.keys[0]


class Put(msgspec.Struct, frozen=True, gc=False):
    """Set ``key``."""

    key: bytes
    value: bytes
    ttl_ms: int | None = None


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Remove ``key`` if it is there."""

    key: bytes


class StreamAdd(msgspec.Struct, frozen=True, gc=False):
    """Add one entry to the stream at ``key``."""

    key: bytes
    payload: bytes


class AdvanceVersion(msgspec.Struct, frozen=True, gc=False):
    """Set ``key`` to ``link(its value, token)``: equal values then mean equal histories of tokens."""

    key: bytes
    token: bytes


@lru_cache(maxsize=256)  # of each commit of a batch by three: who decides it, who comes after, who sends it
def next_version(version: bytes | None, token: bytes) -> bytes:
    """What ``Chain`` writes: SHA-1 in hex of the former value (absent: nothing) and the token."""
    return hashlib.sha1((version or b"") + token, usedforsecurity=False).hexdigest().encode()


Check = LengthEquals | LengthsUnchanged | ValueEquals
Write = Append | AppendMany | AppendCapped | Put | Delete | StreamAdd | AdvanceVersion


@dataclass(frozen=True, slots=True)
class Transaction:
    """All keys must carry the same tag.

    ``given``: while it holds, its author knows that all checks hold; they are looked at only when it does not.
    """

    checks: tuple[Check, ...]
    writes: tuple[Write, ...]
    version_guard: ValueEquals | None = None


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """For doctor, readiness and metrics. ``problem`` is one sentence, or None when all is well."""

    kind: str  # "memory" | "redis" | "redis-cluster"
    version: str
    memory_bytes: int
    durability: str  # in plain words
    ready: bool
    problem: str | None = None


def lease_acquire_transactions(key: bytes, token: bytes, ttl_ms: int) -> tuple[Transaction, Transaction]:
    """Taking or renewing a lease as two transactions; it is ours when either of them applied.

    Repeating them is harmless: a lease that was already taken under ``token`` is renewed.
    """
    put = (Put(key, token, ttl_ms),)
    return Transaction((ValueEquals(key, None),), put), Transaction((ValueEquals(key, token),), put)


def lease_release_transaction(key: bytes, token: bytes) -> Transaction:
    """Giving a lease back; fails its check, harmlessly, when another token holds it by now."""
    return Transaction((ValueEquals(key, token),), (Delete(key),))


class Store(Protocol):
    """What the index, the events and the keys ask of a store; every call may raise StoreUnavailable."""

    async def check(self) -> None:
        """At start: raises ConfigurationError when this store must not be relied upon.

        StoreUnavailable when that cannot be known yet (away, loading): ask again.
        """

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values in the order of ``keys`` (any tags); one round trip where the server allows it."""

    async def commit(self, transaction: Transaction) -> tuple[int, ...]:
        """Apply it. Returns () when applied, else the indices of the checks that failed."""

    async def commit_many(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """Apply several in order, in one round trip if they share a server. Each stands alone."""

    async def put(self, items: Sequence[Put], *, only_if_absent: bool = False) -> list[bool]:
        """Set keys of any tags, not atomically. True where the key was set."""

    async def delete(self, keys: Sequence[bytes]) -> None:
        """Remove keys of any tags, not atomically."""

    async def stream_read(
        self, keys: Sequence[bytes], after: Sequence[bytes], count: int
    ) -> list[list[tuple[bytes, bytes]]]:
        """Per stream, up to ``count`` entries (position, payload) behind position ``after`` (b"" = from the start)."""

    async def stream_tail(self, key: bytes, count: int) -> list[tuple[bytes, bytes]]:
        """The newest ``count`` entries, newest first."""

    async def stream_lengths(self, keys: Sequence[bytes]) -> list[int]:
        """How many entries each stream has now."""

    async def stream_trim(self, key: bytes, before: bytes) -> None:
        """Forget entries older than position ``before``."""

    async def acquire(self, key: bytes, token: bytes, ttl_ms: int) -> bool:
        """Take or renew the lease at ``key``; False while another token holds it."""

    async def release(self, key: bytes, token: bytes) -> None:
        """Give the lease back if ``token`` still holds it."""

    async def scan(self, prefix: bytes) -> list[bytes]:
        """All keys that start with ``prefix``. Slow by nature: doctor and maintenance only."""

    def scan_batches(self, prefix: bytes) -> AsyncIterator[list[bytes]]:
        """The same a few hundred at a time, in any order; a key may come twice, one that is new may not come."""

    async def info(self) -> StoreInfo:
        """State of the store; never raises, an unreachable store is ``ready=False`` with a ``problem``."""

    async def close(self) -> None:
        """Release connections. Idempotent."""
