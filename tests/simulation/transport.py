"""A store connection that stops at every command, so that a scheduler decides what happens next.

Every command of a writer stops twice: before it reaches the store and after it was applied, before
the answer arrives. At each stop the scheduler lets somebody else run, loses the command or its answer
(``StoreUnavailable``, as ``store/redis.py`` raises it), delays it past its writer's patience, or ends
the writer. What is one atomic step on a server is one here: the keys of one tag are read at one
instant, a transaction is applied at once; a pipeline is not, so each of its commands is a stop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from aggregator.errors import StoreUnavailable
from aggregator.store.base import Put, Transaction
from aggregator.store.commit_batching import CommitBatcher
from aggregator.store.memory import MemoryStore

T = TypeVar("T")


class Fault(Enum):
    """What befalls a command at a stop."""

    NONE = "none"
    LOST = "lost"  # before: never arrives; after: its answer does not
    LATE = "late"  # before: it arrives after its writer has given up
    DEATH = "death"  # the writer ends here (never sent into the transport)


@dataclass(frozen=True)
class Stop:
    """A writer waits at ``command``; whoever resumes it says what befalls the command."""

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
    """One writer's connection to ``store``; ``late`` collects delayed commands, ``applied`` is told of commits."""

    def __init__(
        self, store: MemoryStore, late: list[Callable[[], object]], applied: Callable[[Transaction], None]
    ) -> None:
        self._store = store
        self._late = late
        self._applied = applied
        self._runs = CommitBatcher(self._commit_each)

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """One stop per tag; the untagged keys together."""
        parts: dict[bytes, list[int]] = {}
        for i, key in enumerate(keys):
            parts.setdefault(key[: key.find(b"}") + 1], []).append(i)
        found: list[bytes | None] = [None] * len(keys)
        for tag, part in parts.items():
            wanted = [keys[i] for i in part]
            values = await self._call(
                f"read {tag.decode() or 'records'}", lambda wanted=wanted: finish(self._store.read(wanted))
            )
            for i, value in zip(part, values, strict=True):
                found[i] = value
        return found

    async def commit(self, transaction: Transaction) -> tuple[int, ...]:
        return (await self.commit_many([transaction]))[0]

    async def commit_many(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """Joined as a server gets them."""
        return await self._runs.commit(transactions)

    async def _commit_each(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """One stop per transaction; when one comes late, so do those behind it."""
        results: list[tuple[int, ...]] = []
        for i, transaction in enumerate(transactions):
            rest = transactions[i:]
            results.append(
                await self._call(
                    "commit",
                    lambda transaction=transaction: self._commit(transaction),
                    lambda rest=rest: [self._commit(t) for t in rest],
                )
            )
        return results

    async def put(self, items: Sequence[Put], *, only_if_absent: bool = False) -> list[bool]:
        done = []
        for item in items:
            done += await self._call(
                "put",
                lambda item=item: finish(self._store.put([item], only_if_absent=only_if_absent)),
            )
        return done

    async def stream_read(
        self, keys: Sequence[bytes], after: Sequence[bytes], count: int
    ) -> list[list[tuple[bytes, bytes]]]:
        found = []
        for key, position in zip(keys, after, strict=True):
            found += await self._call(
                "read a stream",
                lambda key=key, position=position: finish(self._store.stream_read([key], [position], count)),
            )
        return found

    async def stream_trim(self, key: bytes, before: bytes) -> None:
        await self._call("trim a stream", lambda: finish(self._store.stream_trim(key, before)))

    async def scan_steps(self, prefix: bytes) -> AsyncIterator[list[bytes]]:
        found = await self._call("scan", lambda: finish(self._store.scan(prefix)))
        for i in range(0, len(found), 20):
            yield found[i : i + 20]

    async def delete(self, keys: Sequence[bytes]) -> None:
        await self._call("delete", lambda: finish(self._store.delete(keys)))

    def _commit(self, transaction: Transaction) -> tuple[int, ...]:
        failed = finish(self._store.commit(transaction))
        if not failed:
            self._applied(transaction)
        return failed

    async def _call(
        self, command: str, apply: Callable[[], T], when_late: Callable[[], object] | None = None
    ) -> T:
        fault = await Stop(command, applied=False)
        if fault is Fault.LATE:
            self._late.append(when_late or apply)
        if fault is not Fault.NONE:
            raise StoreUnavailable("The command was lost.")
        value = apply()
        if await Stop(command, applied=True) is not Fault.NONE:
            raise StoreUnavailable("The answer was lost.")
        return value
