"""Contract of a key-value store with atomic compare-and-write transactions and streams.

``memory.MemoryStore`` and ``redis.RedisStore`` implement it; articles, buckets and verdicts are the concern
of ``index/``. Every implementation guarantees:

* **Keys carry a hash tag**: ``{tag}rest``. Keys of one tag are read at one instant and changed atomically (on
  a cluster: one slot). A key without braces has no other key in its tag.
* ``commit`` is compare-and-write: either every check holds and all writes are applied, or nothing changes and
  the indices of the failed checks are returned. A crash leaves all of a transaction or none of it.
* A write may have happened when ``StoreUnavailable`` is raised; every write of the layers above is
  therefore idempotent, or guarded by a check that makes its repetition fail.
* The only errors raised are ``StoreUnavailable`` (retry later) and ``ConfigurationError`` (from ``check``).
  Times to live are in ms; ``None`` means no expiry, values below 1 count as 1.
* A store is safe for any number of tasks of one event loop.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import msgspec


class LengthsUnchanged(msgspec.Struct, frozen=True, gc=False):
    """Holds if each of ``keys`` is as long as its value in ``values``; for keys that only grow."""

    keys: tuple[bytes, ...]
    values: tuple[bytes | None, ...]

    @property
    def lengths(self) -> list[int]:
        """Expected lengths in bytes; not stored: most checks are never sent (``version_guard``)."""
        return [len(value) if value else 0 for value in self.values]


class ValueEquals(msgspec.Struct, frozen=True, gc=False):
    """Holds if ``key`` has exactly this value (None: absent)."""

    key: bytes
    value: bytes | None


class AppendMany(msgspec.Struct, frozen=True, gc=False):
    """Append to keys; one that would grow beyond ``max_bytes`` (0: no limit) is skipped."""

    keys: tuple[bytes, ...]
    values: tuple[bytes, ...]
    max_bytes: int = 0


class AppendCapped(msgspec.Struct, frozen=True, gc=False):
    """Append each of ``values`` to its key; a key above 2 * ``keep_bytes`` is cut to its newest half."""

    keys: tuple[bytes, ...]
    values: tuple[bytes, ...]
    keep_bytes: int


class Put(msgspec.Struct, frozen=True, gc=False):
    """Set ``key``."""

    key: bytes
    value: bytes
    ttl_ms: int | None = None


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Remove ``key`` if it exists."""

    key: bytes


class StreamAdd(msgspec.Struct, frozen=True, gc=False):
    """Add one entry to the stream at ``key``."""

    key: bytes
    payload: bytes


class AdvanceVersion(msgspec.Struct, frozen=True, gc=False):
    """Set ``key`` to ``next_version(its value, token)``: equal values then mean equal histories of tokens."""

    key: bytes
    token: bytes


@lru_cache(256)  # computed three times per commit: by the decision, by the next one, and when it is sent
def next_version(version: bytes | None, token: bytes) -> bytes:
    """The value that ``AdvanceVersion`` writes: hex SHA-1 of the former value (absent: b"") and the token."""
    return hashlib.sha1((version or b"") + token, usedforsecurity=False).hexdigest().encode()


def parse_position(position: bytes) -> tuple[int, int]:
    """A stream position "MS-SEQUENCE" as a tuple that sorts in stream order; b"": (0, 0)."""
    ms, _, sequence = position.partition(b"-")
    return int(ms or 0), int(sequence or 0)


Check = LengthsUnchanged | ValueEquals
Write = AppendMany | AppendCapped | Put | Delete | StreamAdd | AdvanceVersion


@dataclass(frozen=True, slots=True)
class Transaction:
    """Checks and writes that are applied atomically; all keys must carry the same tag.

    ``version_guard``: while it holds, the caller knows that all checks hold; they are evaluated only if it
    fails.
    """

    checks: tuple[Check, ...]
    writes: tuple[Write, ...]
    version_guard: ValueEquals | None = None


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """State of a store, for doctor, readiness and metrics.

    ``problem``: why it does not accept writes; ``warning``: what else is wrong. One sentence each, or None.
    """

    kind: str  # "memory" | "embedded" | "redis" | "redis-cluster"
    version: str
    memory_bytes: int
    durability: str  # one clause in plain words
    ready: bool
    problem: str | None = None
    warning: str | None = None
    limit_bytes: int = 0  # the memory that it may use; 0: no limit is known


class Store(Protocol):
    """The operations of a store; each may raise StoreUnavailable."""

    async def check(self) -> None:
        """Verify at start-up that the store is fit for use. Raises ConfigurationError if it is not.

        Raises StoreUnavailable while that is unknown (unreachable, loading): check again later.
        """

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values in the order of ``keys`` (any tags); one round trip where the server allows it."""

    async def commit(self, transaction: Transaction) -> tuple[int, ...]:
        """Apply a transaction. Returns () if it was applied, else the indices of the failed checks."""

    async def commit_many(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """Apply transactions in order, each one atomically; one round trip if they share a server."""

    async def put(self, items: Sequence[Put], *, only_if_absent: bool = False) -> list[bool]:
        """Set keys of any tags, not atomically. Returns True for each key that was set."""

    async def delete(self, keys: Sequence[bytes]) -> None:
        """Remove keys of any tags, not atomically."""

    async def time_ms(self) -> int | None:
        """The server's own clock, in ms since 1970 UTC; None if the store has no clock."""

    async def stream_read(
        self, keys: Sequence[bytes], after: Sequence[bytes], count: int
    ) -> list[list[tuple[bytes, bytes]]]:
        """Per stream, up to ``count`` entries (position, payload) after position ``after`` (b"": start)."""

    async def stream_tail(self, key: bytes, count: int, before: bytes = b"") -> list[tuple[bytes, bytes]]:
        """The newest ``count`` entries before position ``before`` (b"": of all), newest first."""

    async def stream_trim(self, key: bytes, before: bytes) -> None:
        """Remove entries older than position ``before``."""

    def scan_batches(self, prefix: bytes) -> AsyncIterator[list[bytes]]:
        """All keys that start with ``prefix``, some at a time; one may repeat, a new one be missing."""

    async def info(self) -> StoreInfo:
        """State of the store; never raises: an unreachable store has ``ready=False`` and a ``problem``."""

    async def close(self) -> None:
        """Release connections. Idempotent."""
