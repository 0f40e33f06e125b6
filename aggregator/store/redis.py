"""Store on a Redis >= 7 or Valkey server, or on a cluster of them.

The contract is in ``base.py``, the one Lua script in ``lua/commit.lua``. ``client.py`` sends commands and
handles broken connections, ``diagnostics.py`` translates errors of redis-py and interprets the server's INFO.
Only modules of this package import redis-py.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from operator import itemgetter
from typing import Any, Final

import msgspec
from redis import exceptions as driver
from redis.crc import key_slot

from aggregator.errors import ConfigurationError, StoreUnavailable
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
    ValueEquals,
    Write,
    next_version,
)
from aggregator.store.client import RedisClient, open_client
from aggregator.store.diagnostics import (
    cannot_append,
    find_configuration_errors,
    first_line,
    is_configuration_error,
    refuses_writes,
    summarize,
)
from aggregator.store.pipelining import Command

SendTransactions = Callable[[Sequence[Transaction]], Awaitable[list[tuple[int, ...]]]]
# Calls without merging after one that failed: while others write all the time, merging does not pay off.
BACKOFF_CALLS = 16
COMMIT_SCRIPT: Final = files("aggregator.store").joinpath("lua/commit.lua").read_bytes()
COMMIT_SCRIPT_SHA1: Final = hashlib.sha1(COMMIT_SCRIPT, usedforsecurity=False).hexdigest()

_ABSENT, _EQUALS_VALUE = -1, -2  # in the ``want`` list of the script
_APPEND, _PUT, _DELETE, _STREAM_ADD, _APPEND_CAPPED, _ADVANCE_VERSION = 1, 2, 3, 4, 5, 6  # in its ``steps``
_GLOB_SPECIAL_BYTES: Final = b"\\*?[]^-"


def encode_transaction(transaction: Transaction) -> Command:
    """(number of keys, keys..., plan, values...) for commit.lua, whose head comment specifies the plan."""
    keys: list[bytes] = []
    values: list[bytes] = []
    want: list[int] = []
    steps: list[int] = []
    guard = transaction.version_guard
    for check in transaction.checks if guard is None else (guard, *transaction.checks):
        if isinstance(check, LengthsUnchanged):
            keys += check.keys
            want += check.lengths
            continue
        keys.append(check.key)
        if check.value is None:
            want.append(_ABSENT)
        else:
            want.append(_EQUALS_VALUE)
            values.append(check.value)
    for write in transaction.writes:
        if isinstance(write, (AppendMany, AppendCapped)):
            keys += write.keys
            values += write.values
            if isinstance(write, AppendMany):
                steps += (_APPEND, write.max_bytes) * len(write.keys)
            else:
                steps += (_APPEND_CAPPED, write.keep_bytes) * len(write.keys)
            continue
        keys.append(write.key)
        if isinstance(write, Put):
            steps += (_PUT, 0 if write.ttl_ms is None else max(1, write.ttl_ms))
            values.append(write.value)
        elif isinstance(write, Delete):
            steps += (_DELETE, 0)
        elif isinstance(write, AdvanceVersion):
            steps += (_ADVANCE_VERSION, 0)
            values.append(write.token)
        else:
            steps += (_STREAM_ADD, 0)
            values.append(write.payload)
    plan = msgspec.msgpack.encode((want, steps, guard is not None))
    return (len(keys), *keys, plan, *values)


def set_command(item: Put) -> Command:
    """The SET command of ``item``."""
    lifetime = () if item.ttl_ms is None else ("PX", max(1, item.ttl_ms))
    return ("SET", item.key, item.value, *lifetime)


def parse_stream_entries(answer: Any) -> list[tuple[bytes, bytes]]:
    """A reply of XRANGE or XREVRANGE as (position, payload) pairs; an entry has one field, ``p``."""
    # Fields are a dictionary from redis-py's cluster client, a flat list from ``pipelining``.
    return [
        (position, fields[b"p"] if isinstance(fields, dict) else fields[1])
        for position, fields in answer or ()
    ]


def failed_checks(key_numbers: Sequence[int], checks: Sequence[Check]) -> tuple[int, ...]:
    """The reply of the script as indices of checks; the script numbers keys from 1."""
    checked = [
        i
        for i, check in enumerate(checks)
        for _ in range(len(check.keys) if isinstance(check, LengthsUnchanged) else 1)
    ]
    return tuple(dict.fromkeys(checked[number - 1] for number in key_numbers))


def prefix_pattern(prefix: bytes) -> bytes:
    """A glob pattern for SCAN that matches ``prefix`` literally."""
    return b"".join(b"\\" + bytes([c]) if c in _GLOB_SPECIAL_BYTES else bytes([c]) for c in prefix) + b"*"


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
        while end < len(transactions) and transactions[end].version_guard == ValueEquals(key, version):
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


_CONFIRM = Transaction((), (Put(b"{aggregator}replicated", b"", 60_000),))
_PROBE = Transaction((), (Delete(b"{aggregator}probe"),))  # changes nothing


def open_redis_store(url: str, **options: Any) -> RedisStore:
    """Create a store for a URL, with the options of ``client.open_client``; call ``check`` before use."""
    return RedisStore(open_client(url, **options))


class RedisStore:
    """Implements ``base.Store``; safe for any number of tasks of one event loop."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self.kind = "redis-cluster" if client.is_cluster else "redis"  # or "embedded" (``identity.py``)
        self.leave_moved_server, self.reconnect = client.leave_moved_server, client.reconnect
        self.refusal = ""  # why nothing may be written, one sentence (``identity.py``)
        # In order, on a cluster within each hash slot.
        self.commit_many = CommitBatcher(self._commit_each).commit

    @property
    def is_promoted(self) -> bool:
        """Whether the server was a replica of the one that answered before it."""
        return self._client.is_promoted

    def _write_to(self) -> RedisClient:
        if self.refusal:
            raise StoreUnavailable(self.refusal)
        return self._client

    async def check(self) -> None:
        """Verify that the server is fit for use. Raises ConfigurationError that lists all problems."""
        try:
            nodes, cluster = await self._client.nodes(), self._client.is_cluster
            problems = [p for node in nodes for p in find_configuration_errors(node, cluster=cluster)]
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

    async def _commit_each(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        calls = list(map(encode_transaction, transactions))
        with_keys = list(filter(itemgetter(0), calls))
        if not with_keys and self._client.replicates:  # repeats of what no replica may have yet
            with_keys.append(encode_transaction(_CONFIRM))
        answers = iter(await self._write_to().run_script(COMMIT_SCRIPT, COMMIT_SCRIPT_SHA1, with_keys))
        results: list[tuple[int, ...]] = []
        for transaction, call in zip(transactions, calls, strict=True):
            numbers = next(answers) if call[0] else ()
            results.append(failed_checks(numbers, transaction.checks) if numbers else ())
        return results

    async def put(self, items: Sequence[Put], *, only_if_absent: bool = False) -> list[bool]:
        """One pipeline of SET commands."""
        commands = list(map(set_command, items))
        if only_if_absent:
            commands = [(*command, "NX") for command in commands]
        return list(map(bool, await self._write_to().send(commands)))

    async def delete(self, keys: Sequence[bytes]) -> None:
        """Remove keys with one UNLINK, on a cluster one per key."""
        commands = [("UNLINK", key) for key in keys] if self._client.is_cluster else [("UNLINK", *keys)]
        if keys:
            await self._write_to().send(commands)

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
        command = ("XREVRANGE", key, b"(" + before if before else b"+", b"-", b"COUNT", count)
        (answer,) = await self._client.send([command], retry_read=True)
        return parse_stream_entries(answer)

    async def stream_trim(self, key: bytes, before: bytes) -> None:
        """Remove entries older than position ``before``."""
        await self._write_to().send([("XTRIM", key, b"MINID", b"=", before)])

    def scan_batches(self, prefix: bytes) -> AsyncIterator[list[bytes]]:
        """Up to 1,000 keys at a time."""
        return self._client.scan(prefix_pattern(prefix))

    async def info(self) -> StoreInfo:
        """State of the server or of all primaries; never raises."""
        try:
            nodes = await self._client.nodes()
            found = summarize(nodes, self.kind)
            if any(node.info.get("role") == "slave" for node in nodes):  # by a connection that was in use
                await self.reconnect()
        except StoreUnavailable as error:
            return StoreInfo(self.kind, "", 0, "unknown while it is unavailable", False, str(error))
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
            if cause is None or refuses_writes(cause) or isinstance(cause, driver.OutOfMemoryError):
                return  # scripts run, what is stored can be read; None: no replica confirms what is written
            rejected = isinstance(cause, driver.ResponseError) and not isinstance(
                cause, (driver.ReadOnlyError, driver.ClusterDownError)
            )
            if rejected and not str(cause).startswith("BUSY"):
                raise ConfigurationError(
                    f"store_url: {self._client.address} does not run scripts ({first_line(cause)}); "
                    "allow EVAL and EVALSHA to this user."
                ) from error
            raise
