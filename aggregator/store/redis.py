"""Store on a Redis >= 7 or Valkey server, or on a cluster of them.

The contract is in ``base.py``, the one Lua script in ``lua/commit.lua``. ``client.py`` sends commands and
handles broken connections, ``diagnostics.py`` translates errors of redis-py and interprets the server's INFO.
Only modules of this package import redis-py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from redis import exceptions as driver
from redis.crc import key_slot

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.base import AdvanceVersion, Delete, Put, StoreInfo, Transaction, Write, next_version
from aggregator.store.client import RedisClient, open_client
from aggregator.store.diagnostics import (
    cannot_append,
    find_configuration_errors,
    first_line,
    is_configuration_error,
    refuses_writes,
    summarize,
)
from aggregator.store.protocol import (
    COMMIT_SCRIPT,
    COMMIT_SCRIPT_SHA1,
    encode_transaction,
    failed_checks,
    parse_stream_entries,
    prefix_pattern,
    set_command,
)

SendTransactions = Callable[[Sequence[Transaction]], Awaitable[list[tuple[int, ...]]]]
# Calls without merging after one that failed: while others write all the time, merging does not pay off.
BACKOFF_CALLS = 16


@dataclass(frozen=True, slots=True)
class CommitRun:
    """Transactions ``start`` to ``end`` (exclusive) of a list; ``is_merged``: as one, checked by version."""

    start: int
    end: int
    transaction: Transaction
    is_merged: bool


class CommitBatcher:
    """Commits lists of transactions in order through ``send``, which applies each one atomically.

    Each article of a batch expects the segment version that the article before it produces
    (``base.AdvanceVersion``). While the segment has the version that the first one expects, all their checks
    hold. So they are sent as **one** transaction that checks only that version: a tenth of the keys and one
    script call. If another process committed in between, the merged transaction changes nothing, and each
    transaction is sent again separately with all its checks.
    """

    def __init__(self, send: SendTransactions) -> None:
        self._send = send
        self._backoff_left = 0

    async def commit(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """As ``base.Store.commit_many``."""
        if self._backoff_left:
            self._backoff_left -= 1
            return await self._send(transactions)
        runs = split_into_runs(transactions)
        replies = await self._send([run.transaction for run in runs])
        results: list[tuple[int, ...]] = [()] * len(transactions)
        unmerged: list[int] = []
        for run, failed in zip(runs, replies, strict=True):
            if run.is_merged and failed:
                unmerged += range(run.start, run.end)
            elif failed:
                results[run.start] = failed
        if unmerged:
            self._backoff_left = BACKOFF_CALLS
            separate = [replace(transactions[i], version_guard=None) for i in unmerged]
            for i, failed in zip(unmerged, await self._send(separate), strict=True):
                results[i] = failed
        return results


def split_into_runs(transactions: Sequence[Transaction]) -> list[CommitRun]:
    """Cut a list into maximal runs: each transaction expects the version that the one before it produces."""
    runs: list[CommitRun] = []
    start = 0
    while start < len(transactions):
        first = transactions[start]
        if first.version_guard is None:
            runs.append(CommitRun(start, start + 1, first, False))
            start += 1
            continue
        key, version = first.version_guard.key, first.version_guard.value
        writes: list[Write] = []
        end = start
        while end < len(transactions):
            guard = transactions[end].version_guard
            if guard is None or guard.key != key or guard.value != version:
                break
            for write in transactions[end].writes:
                if isinstance(write, AdvanceVersion) and write.key == key:
                    version = next_version(version, write.token)
                else:
                    writes.append(write)
            end += 1
        if version is not None:
            writes.append(Put(key, version))
        runs.append(CommitRun(start, end, Transaction((first.version_guard,), tuple(writes)), True))
        start = end
    return runs


_PROBE = Transaction((), (Delete(b"{aggregator}probe"),))  # changes nothing


def open_redis_store(url: str, **options: Any) -> RedisStore:
    """Create a store for a URL, with the options of ``client.open_client``; call ``check`` before use."""
    return RedisStore(open_client(url, **options))


class RedisStore:
    """Implements ``base.Store``; safe for any number of tasks of one event loop."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._batcher = CommitBatcher(self._commit_each)

    async def check(self) -> None:
        """Verify that the server is fit for use. Raises ConfigurationError that lists all problems."""
        is_cluster = self._client.is_cluster
        try:
            nodes = await self._client.nodes()
            problems = [p for node in nodes for p in find_configuration_errors(node, cluster=is_cluster)]
            if not problems:
                await self._check_scripting()
        except StoreUnavailable as error:
            if is_configuration_error(error.__cause__):
                raise ConfigurationError(f"store_url: {error}") from error
            raise
        if problems:
            raise ConfigurationError(problems)

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values in the order of ``keys``: one MGET, on a cluster one per hash slot."""
        if not keys:
            return []
        if not self._client.is_cluster:
            (values,) = await self._client.send([("MGET", *keys)], retry_read=True)
            return list(values)
        groups: dict[int, list[int]] = {}
        for i, key in enumerate(keys):
            groups.setdefault(key_slot(key), []).append(i)
        commands = [("MGET", *(keys[i] for i in group)) for group in groups.values()]
        answers = await self._client.send(commands, retry_read=True)
        found: list[bytes | None] = [None] * len(keys)
        for group, values in zip(groups.values(), answers, strict=True):
            for i, value in zip(group, values, strict=True):
                found[i] = value
        return found

    async def commit(self, transaction: Transaction) -> tuple[int, ...]:
        """One call of the commit script."""
        return (await self._commit_each([transaction]))[0]

    async def commit_many(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """Apply in order (on a cluster: in order within each hash slot), merged by ``CommitBatcher``."""
        return await self._batcher.commit(transactions)

    async def _commit_each(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        calls = [encode_transaction(transaction) for transaction in transactions]
        with_keys = [call for call in calls if call[0]]
        answers = iter(await self._client.run_script(COMMIT_SCRIPT, COMMIT_SCRIPT_SHA1, with_keys))
        return [
            failed_checks(next(answers), transaction.checks) if call[0] else ()
            for transaction, call in zip(transactions, calls, strict=True)
        ]

    async def put(self, items: Sequence[Put], *, only_if_absent: bool = False) -> list[bool]:
        """One pipeline of SET commands."""
        condition = ("NX",) if only_if_absent else ()
        answers = await self._client.send([(*set_command(item), *condition) for item in items])
        return [bool(answer) for answer in answers]

    async def delete(self, keys: Sequence[bytes]) -> None:
        """Remove keys with one UNLINK, on a cluster one per key."""
        if keys:
            await self._client.send(
                [("UNLINK", key) for key in keys] if self._client.is_cluster else [("UNLINK", *keys)]
            )

    async def time_ms(self) -> int | None:
        """TIME of the server, on a cluster of one primary: a script, since its key selects the node."""
        command = ("EVAL", "return redis.call('TIME')", 1, b"{aggregator}time")
        ((seconds, microseconds),) = await self._client.send([command], retry_read=True)
        return int(seconds) * 1000 + int(microseconds) // 1000

    async def stream_read(
        self, keys: Sequence[bytes], after: Sequence[bytes], count: int
    ) -> list[list[tuple[bytes, bytes]]]:
        """Per stream, up to ``count`` entries after its position; one round trip for all streams."""
        if count < 1:
            return [[] for _ in keys]
        commands = [
            ("XRANGE", key, b"(" + position if position else b"-", b"+", b"COUNT", count)
            for key, position in zip(keys, after, strict=True)
        ]
        return [parse_stream_entries(answer) for answer in await self._client.send(commands, retry_read=True)]

    async def stream_tail(self, key: bytes, count: int, before: bytes = b"") -> list[tuple[bytes, bytes]]:
        """The newest ``count`` entries before ``before``, newest first."""
        if count < 1:
            return []
        newest = b"(" + before if before else b"+"
        (answer,) = await self._client.send(
            [("XREVRANGE", key, newest, b"-", b"COUNT", count)], retry_read=True
        )
        return parse_stream_entries(answer)

    async def stream_lengths(self, keys: Sequence[bytes]) -> list[int]:
        """Number of entries of each stream, in one round trip."""
        answers = await self._client.send([("XLEN", key) for key in keys], retry_read=True)
        return [int(answer) for answer in answers]

    async def stream_trim(self, key: bytes, before: bytes) -> None:
        """Remove entries older than position ``before``."""
        await self._client.send([("XTRIM", key, b"MINID", b"=", before)])

    async def scan(self, prefix: bytes) -> list[bytes]:
        """All keys that start with ``prefix``, sorted; scans the whole server."""
        return sorted({key async for found in self.scan_batches(prefix) for key in found})

    def scan_batches(self, prefix: bytes) -> AsyncIterator[list[bytes]]:
        """As ``scan``, unsorted, up to 1,000 keys at a time."""
        return self._client.scan(prefix_pattern(prefix))

    async def info(self) -> StoreInfo:
        """State of the server or of all primaries; never raises."""
        kind = "redis-cluster" if self._client.is_cluster else "redis"
        try:
            nodes = await self._client.nodes()
            found = summarize(nodes, cluster=self._client.is_cluster)
        except StoreUnavailable as error:
            return StoreInfo(kind, "", 0, "unknown while it is unavailable", False, str(error))
        if any(cannot_append(node) and node.disk is None for node in nodes):
            try:
                await self.commit(_PROBE)
            except StoreUnavailable as error:  # in the words of the server, which INFO does not have
                return replace(found, problem=str(error))
        return found

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()

    async def _check_scripting(self) -> None:
        try:
            await self.commit(_PROBE)
        except StoreUnavailable as error:
            cause = error.__cause__
            if cause is not None and refuses_writes(cause):
                return  # scripts run, and what is stored can be read; ``info`` says why writes are refused
            rejected = isinstance(cause, driver.ResponseError) and not isinstance(
                cause, (driver.OutOfMemoryError, driver.ReadOnlyError, driver.ClusterDownError)
            )
            if rejected and not str(cause).startswith("BUSY"):
                raise ConfigurationError(
                    f"store_url: {self._client.address} does not run scripts ({first_line(cause)}); "
                    "allow EVAL and EVALSHA to this user."
                ) from error
            raise
