"""In-memory store for tests, replay and ``--store memory``; its data ends with the process.

It implements the whole contract of ``base.py``, so code that works on it works on a server. No method awaits
anything, so on one event loop each call is one atomic step.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from operator import itemgetter

from aggregator import __version__
from aggregator.store.base import (
    AdvanceVersion,
    AppendCapped,
    AppendMany,
    Check,
    Delete,
    LengthsUnchanged,
    Put,
    StoreInfo,
    Transaction,
    Write,
    next_version,
    parse_position,
)
from aggregator.time_units import wall_clock_ms

StreamEntry = tuple[tuple[int, int], bytes]  # ((ms, sequence), payload)


class MemoryStore:
    """A store without a server; ``clock`` returns ms and drives times to live and stream positions."""

    def __init__(self, clock: Callable[[], int] = wall_clock_ms) -> None:
        self._clock = clock
        self._values: dict[bytes, bytes] = {}
        self._expires_ms: dict[bytes, int] = {}
        self._expiry_heap: list[tuple[int, bytes]] = []  # entries that a later Put made obsolete are skipped
        self._streams: dict[bytes, list[StreamEntry]] = {}
        self._last_positions: dict[bytes, tuple[int, int]] = {}  # kept by a trim: positions never repeat

    async def check(self) -> None:
        """Always fit for use."""

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """A stream reads as None."""
        self._remove_expired()
        return [self._values.get(key) for key in keys]

    async def commit(self, transaction: Transaction) -> tuple[int, ...]:
        """Returns () if it was applied, else the indices of the failed checks."""
        self._remove_expired()
        failed: tuple[int, ...] = ()
        if transaction.version_guard is None or not self._check_holds(transaction.version_guard):
            failed = tuple(i for i, check in enumerate(transaction.checks) if not self._check_holds(check))
        if not failed:
            for write in transaction.writes:
                self._apply(write)
        return failed

    async def commit_many(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """Apply each in order."""
        return [await self.commit(transaction) for transaction in transactions]

    async def put(self, items: Sequence[Put], *, only_if_absent: bool = False) -> list[bool]:
        """Returns True for each key that was set."""
        self._remove_expired()
        done = []
        for item in items:
            done.append(not only_if_absent or not self._exists(item.key))
            if done[-1]:
                self._apply(item)
        return done

    async def delete(self, keys: Sequence[bytes]) -> None:
        """Remove values and streams."""
        for key in keys:
            self._remove(key)

    async def time_ms(self) -> int | None:
        """None: it has the clock of its process."""
        return None

    async def stream_read(
        self, keys: Sequence[bytes], after: Sequence[bytes], count: int
    ) -> list[list[tuple[bytes, bytes]]]:
        """Per stream, up to ``count`` entries after its position."""
        found = []
        for key, position in zip(keys, after, strict=True):
            entries = self._streams.get(key, [])
            first = bisect_right(entries, parse_position(position), key=itemgetter(0)) if position else 0
            found.append([_encode_entry(entry) for entry in entries[first : first + max(0, count)]])
        return found

    async def stream_tail(self, key: bytes, count: int, before: bytes = b"") -> list[tuple[bytes, bytes]]:
        """The newest ``count`` entries before ``before``, newest first."""
        entries = self._streams.get(key, [])
        end = bisect_left(entries, parse_position(before), key=itemgetter(0)) if before else len(entries)
        return [_encode_entry(entry) for entry in reversed(entries[max(0, end - max(0, count)) : end])]

    async def stream_trim(self, key: bytes, before: bytes) -> None:
        """Remove entries older than position ``before``."""
        entries = self._streams.get(key, [])
        del entries[: bisect_left(entries, parse_position(before), key=itemgetter(0))]

    async def scan_batches(self, prefix: bytes) -> AsyncIterator[list[bytes]]:
        """A hundred keys at a time, sorted."""
        self._remove_expired()
        found = sorted(key for key in {**self._values, **self._streams} if key.startswith(prefix))
        for i in range(0, len(found), 100):
            yield found[i : i + 100]

    async def info(self) -> StoreInfo:
        """Always ready; ``memory_bytes`` counts keys and values without the overhead of Python."""
        self._remove_expired()
        used = sum(len(key) + len(value) for key, value in self._values.items())
        used += sum(len(payload) for entries in self._streams.values() for _, payload in entries)
        return StoreInfo("memory", __version__, used, "nothing is kept: it ends with this process", True)

    async def close(self) -> None:
        """Nothing to release."""

    def _exists(self, key: bytes) -> bool:
        return key in self._values or key in self._streams

    def _check_holds(self, check: Check) -> bool:
        if isinstance(check, LengthsUnchanged):
            each = zip(check.keys, check.lengths, strict=True)
            return all(len(self._values.get(key, b"")) == length for key, length in each)
        if check.value is None:
            return not self._exists(check.key)
        return self._values.get(check.key) == check.value

    def _apply(self, write: Write) -> None:
        if isinstance(write, AppendMany):
            for key, value in zip(write.keys, write.values, strict=True):
                present = self._values.get(key, b"")
                if not write.max_bytes or len(present) + len(value) <= write.max_bytes:
                    self._values[key] = present + value  # keeps the time to live, as APPEND does
        elif isinstance(write, AppendCapped):
            for key, value in zip(write.keys, write.values, strict=True):
                grown = self._values.get(key, b"") + value
                self._values[key] = (
                    grown if len(grown) <= 2 * write.keep_bytes else grown[-write.keep_bytes :]
                )
        elif isinstance(write, Put):
            self._remove(write.key)
            self._values[write.key] = bytes(write.value)
            if write.ttl_ms is not None:
                due_ms = self._clock() + max(1, write.ttl_ms)
                self._expires_ms[write.key] = due_ms
                heapq.heappush(self._expiry_heap, (due_ms, write.key))
        elif isinstance(write, Delete):
            self._remove(write.key)
        elif isinstance(write, AdvanceVersion):
            self._values[write.key] = next_version(self._values.get(write.key), write.token)
        else:
            self._stream_add(write.key, bytes(write.payload))

    def _stream_add(self, key: bytes, payload: bytes) -> None:
        ms, sequence = self._last_positions.get(key, (-1, 0))
        now_ms = self._clock()
        position = (now_ms, 0) if now_ms > ms else (ms, sequence + 1)  # also if the clock was set back
        self._last_positions[key] = position
        self._streams.setdefault(key, []).append((position, payload))

    def _remove(self, key: bytes) -> None:
        for part in (self._values, self._expires_ms, self._last_positions, self._streams):
            part.pop(key, None)

    def _remove_expired(self) -> None:
        now_ms = self._clock()
        while self._expiry_heap and self._expiry_heap[0][0] <= now_ms:
            due_ms, key = heapq.heappop(self._expiry_heap)
            if self._expires_ms.get(key) == due_ms:
                self._remove(key)


def _encode_entry(entry: StreamEntry) -> tuple[bytes, bytes]:
    (ms, sequence), payload = entry
    return b"%d-%d" % (ms, sequence), payload
