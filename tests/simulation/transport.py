"""A store connection that stops at every command, so that a scheduler decides what happens next.

Every command of a writer stops twice: before it reaches the store, and after it was applied but before the
answer arrives. At each stop the scheduler may run another writer, lose the command or its answer
(``StoreUnavailable``, as ``store/redis.py`` raises it), delay the command past its writer's timeout, or crash
the writer. Atomicity is that of a server: the keys of one hash tag are read at one instant and a transaction
is applied atomically, but each command of a pipeline is a stop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from aggregator.errors import StoreUnavailable
from aggregator.store.base import Put, Transaction
from aggregator.store.memory import MemoryStore
from aggregator.store.redis import CommitBatcher
from tests.support.store_steps import scan

T = TypeVar("T")


class Fault(Enum):
    """What happens to a command at a stop."""

    NONE = "none"
    LOST = "lost"  # before: the command never arrives; after: its answer does not
    LATE = "late"  # before: the command arrives after its writer has given up
    DEATH = "death"  # the writer crashes here (never sent into the transport)


@dataclass(frozen=True)
class Stop:
    """A writer waits at ``command``; the scheduler resumes it with a fault."""

    command: str
    applied: bool

    def __await__(self) -> Generator[Stop, Fault, Fault]:
        return (yield self)


def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that awaits nothing but the in-memory store."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("an undisturbed coroutine stopped")


class Transport:
    """One writer's connection to ``store``.

    ``delayed`` collects late commands; ``on_commit`` is called with every transaction that was applied.
    """

    def __init__(
        self,
        store: MemoryStore,
        delayed: list[Callable[[], object]],
        on_commit: Callable[[Transaction], None],
    ) -> None:
        self._store = store
        self._delayed = delayed
        self._on_commit = on_commit
        self._batcher = CommitBatcher(self._commit_each)

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """One stop per hash tag; the keys without a tag together."""
        positions: dict[bytes, list[int]] = {}
        for i, key in enumerate(keys):
            positions.setdefault(key[: key.find(b"}") + 1], []).append(i)
        found: list[bytes | None] = [None] * len(keys)
        for tag, part in positions.items():
            values = await self._call(
                f"read {tag.decode() or 'records'}", partial(self._read, [keys[i] for i in part])
            )
            for i, value in zip(part, values, strict=True):
                found[i] = value
        return found

    async def commit(self, transaction: Transaction) -> tuple[int, ...]:
        """Failed checks of one transaction; () if it was applied."""
        return (await self.commit_many([transaction]))[0]

    async def commit_many(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """Merged into runs, as a server receives them."""
        return await self._batcher.commit(transactions)

    async def _commit_each(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """One stop per transaction; when one is delayed, those after it are as well."""
        results: list[tuple[int, ...]] = []
        for i, transaction in enumerate(transactions):
            results.append(
                await self._call(
                    "commit",
                    partial(self._commit, transaction),
                    partial(self._commit_all, transactions[i:]),
                )
            )
        return results

    async def put(self, items: Sequence[Put], *, only_if_absent: bool = False) -> list[bool]:
        """One stop per item."""
        done: list[bool] = []
        for item in items:
            done += await self._call("put", partial(self._put, item, only_if_absent))
        return done

    async def stream_read(
        self, keys: Sequence[bytes], after: Sequence[bytes], count: int
    ) -> list[list[tuple[bytes, bytes]]]:
        """One stop per stream."""
        found: list[list[tuple[bytes, bytes]]] = []
        for key, position in zip(keys, after, strict=True):
            found += await self._call("read a stream", partial(self._stream_read, key, position, count))
        return found

    async def stream_trim(self, key: bytes, before: bytes) -> None:
        """One stop."""
        await self._call("trim a stream", lambda: finish(self._store.stream_trim(key, before)))

    async def scan_batches(self, prefix: bytes) -> AsyncIterator[list[bytes]]:
        """One stop for the whole scan."""
        found = await self._call("scan", lambda: finish(scan(self._store, prefix)))
        for i in range(0, len(found), 20):
            yield found[i : i + 20]

    async def delete(self, keys: Sequence[bytes]) -> None:
        """One stop."""
        await self._call("delete", lambda: finish(self._store.delete(keys)))

    def _read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return list(finish(self._store.read(keys)))

    def _put(self, item: Put, only_if_absent: bool) -> list[bool]:
        return list(finish(self._store.put([item], only_if_absent=only_if_absent)))

    def _stream_read(self, key: bytes, position: bytes, count: int) -> list[list[tuple[bytes, bytes]]]:
        return [list(entries) for entries in finish(self._store.stream_read([key], [position], count))]

    def _commit(self, transaction: Transaction) -> tuple[int, ...]:
        failed = finish(self._store.commit(transaction))
        if not failed:
            self._on_commit(transaction)
        return failed

    def _commit_all(self, transactions: Sequence[Transaction]) -> None:
        for transaction in transactions:
            self._commit(transaction)

    async def _call(
        self, command: str, apply: Callable[[], T], when_late: Callable[[], object] | None = None
    ) -> T:
        fault = await Stop(command, applied=False)
        if fault is Fault.LATE:
            self._delayed.append(when_late or apply)
        if fault is not Fault.NONE:
            raise StoreUnavailable("The command was lost.")
        value = apply()
        if await Stop(command, applied=True) is not Fault.NONE:
            raise StoreUnavailable("The answer was lost.")
        return value
