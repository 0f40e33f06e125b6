"""The store on a Redis >= 7 or Valkey server, or on a cluster of them.

The only module that speaks to the driver and the only one that sees its errors. What a caller may
rely on stands in ``base.py``; what the server's own report means stands in ``health.py``.

**Nothing that writes is ever repeated here.** When a connection breaks after a request was sent,
nobody can tell whether it was applied, so the driver's own retries are switched off and the caller
gets ``StoreUnavailable``. It may then repeat: a commit that was applied after all fails its own
checks the second time (the buckets have grown, the id is there), and the layer above, reading
again, finds its own article. Plain reads are repeated once on a broken connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from redis import exceptions as driver
from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store import health
from aggregator.store.base import (
    Delete,
    Put,
    StoreInfo,
    Transaction,
    lease_return,
    lease_steps,
)
from aggregator.store.failures import FAILURES, STALE_TOPOLOGY, first_line, innermost, sentence
from aggregator.store.wire import (
    COMMIT,
    COMMIT_SHA,
    Command,
    encode,
    entries,
    failed,
    set_command,
    starts_with,
    text,
)

_HEALTH_CHECK_S = 25  # below the idle limits of usual load balancers
_SCAN_COUNT = 1000


def open_store(
    url: str, *, socket_timeout_s: float = 5.0, max_connections: int = 64, connect_timeout_s: float = 2.0
) -> RedisStore:
    """A store at ``url``: redis://, rediss://, unix:// or redis+cluster:// (also rediss+cluster://).

    Connects at the first call; call ``check`` once before relying on it. ``max_connections`` is
    per server; further callers wait up to ``socket_timeout_s`` for a free one.
    Raises ConfigurationError when the url cannot be understood.
    """
    plain = url.replace("+cluster://", "://", 1)
    options: dict[str, Any] = {
        "socket_timeout": socket_timeout_s,
        "socket_connect_timeout": min(connect_timeout_s, socket_timeout_s),
        "health_check_interval": _HEALTH_CHECK_S,
        "decode_responses": False,
        "protocol": 2,  # nothing of RESP3 is needed, and its push messages hide a dead idle connection
        "retry": Retry(NoBackoff(), 0),
    }
    try:
        address = _address(plain)
        if plain == url:
            pool = BlockingConnectionPool.from_url(
                url, max_connections=max_connections, timeout=socket_timeout_s, **options
            )
            return RedisStore(Redis.from_pool(pool), address)
        cluster = RedisCluster.from_url(plain, max_connections=max_connections + 4, **options)
    except (ValueError, TypeError, driver.RedisError, driver.RedisClusterException) as error:
        raise ConfigurationError(
            "store_url: expected redis://host:port/0, rediss://, unix:///path or redis+cluster://host:port."
        ) from error
    return RedisStore(cluster, address, places=max_connections, wait_s=socket_timeout_s)


def _address(url: str) -> str:
    """Where ``url`` points, without the password."""
    parts: dict[str, Any] = dict(parse_url(url))
    if "path" in parts:
        return str(parts["path"])
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 6379)}"


class RedisStore:
    """See ``base.Store``. Made by ``open_store``; safe for any number of tasks of one event loop."""

    def __init__(
        self, client: Redis | RedisCluster, address: str, *, places: int = 0, wait_s: float = 5.0
    ) -> None:
        self._client: Any = client
        self._address = address
        self._is_cluster = isinstance(client, RedisCluster)
        # A cluster's driver raises at once when its connections are busy; our callers wait instead.
        self._places = asyncio.Semaphore(places) if self._is_cluster else None
        self._wait_s = wait_s

    async def check(self) -> None:
        """Raises ConfigurationError listing all that makes this server unfit.

        StoreUnavailable when it is away or still loading: then nothing is known yet, so check again.
        """
        try:
            nodes = await self._nodes()
            problems = [p for node in nodes for p in health.refusals(node, cluster=self._is_cluster)]
            if not problems:
                await self._probe_scripting()
        except StoreUnavailable as error:
            if isinstance(error.__cause__, (driver.AuthenticationError, driver.NoPermissionError)):
                raise ConfigurationError(f"store_url: {error}") from error
            raise
        if problems:
            raise ConfigurationError(problems)

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values in the order of ``keys``: one MGET, on a cluster one for each slot."""
        if not keys:
            return []
        if not self._is_cluster:
            (values,) = await self._send([("MGET", *keys)], again=True)
            return list(values)
        groups: dict[int, list[int]] = {}
        for i, key in enumerate(keys):
            groups.setdefault(key_slot(key), []).append(i)
        answers = await self._send(
            [("MGET", *(keys[i] for i in group)) for group in groups.values()], again=True
        )
        found: list[bytes | None] = [None] * len(keys)
        for group, values in zip(groups.values(), answers, strict=True):
            for i, value in zip(group, values, strict=True):
                found[i] = value
        return found

    async def commit(self, transaction: Transaction) -> tuple[int, ...]:
        """One script; () when applied, else the indices of the checks that failed."""
        call = encode(transaction)
        if not call[0]:
            return ()
        try:
            (numbers,) = await self._send([("EVALSHA", COMMIT_SHA, *call)])
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, driver.NoScriptError):
                raise
            # The server has never seen the script or forgot it (restart, SCRIPT FLUSH), so nothing
            # was done: sending it with its text is safe, and teaches it.
            (numbers,) = await self._send([("EVAL", COMMIT, *call)])
        return failed(numbers)

    async def commit_many(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        """In order (on a cluster: in order within each slot). The first to each server brings the text.

        So none of the others can be refused as unknown and then be repeated out of its order.
        """
        calls = [encode(transaction) for transaction in transactions]
        taught: set[int] = set()
        commands: list[Command] = []
        for call in calls:
            if call[0]:
                slot = key_slot(call[1]) if self._is_cluster else 0
                script = ("EVALSHA", COMMIT_SHA) if slot in taught else ("EVAL", COMMIT)
                taught.add(slot)
                commands.append((*script, *call))
        answers = iter(await self._send(commands))
        return [failed(next(answers)) if call[0] else () for call in calls]

    async def put(self, items: Sequence[Put], *, only_if_absent: bool = False) -> list[bool]:
        """One pipeline of SETs; True where the key was set."""
        condition = ("NX",) if only_if_absent else ()
        answers = await self._send([(*set_command(item), *condition) for item in items])
        return [bool(answer) for answer in answers]

    async def delete(self, keys: Sequence[bytes]) -> None:
        """Remove keys; one command, on a cluster one for each key."""
        if keys:
            await self._send([("UNLINK", key) for key in keys] if self._is_cluster else [("UNLINK", *keys)])

    async def stream_read(
        self, keys: Sequence[bytes], after: Sequence[bytes], count: int
    ) -> list[list[tuple[bytes, bytes]]]:
        """Per stream, up to ``count`` entries behind its position, all streams in one round trip."""
        if count < 1:
            return [[] for _ in keys]
        commands = [
            ("XRANGE", key, b"(" + position if position else b"-", b"+", b"COUNT", count)
            for key, position in zip(keys, after, strict=True)
        ]
        return [entries(answer) for answer in await self._send(commands, again=True)]

    async def stream_tail(self, key: bytes, count: int) -> list[tuple[bytes, bytes]]:
        """The newest ``count`` entries, newest first."""
        if count < 1:
            return []
        (answer,) = await self._send([("XREVRANGE", key, b"+", b"-", b"COUNT", count)], again=True)
        return entries(answer)

    async def stream_trim(self, key: bytes, before: bytes) -> None:
        """Forget entries older than position ``before``."""
        await self._send([("XTRIM", key, b"MINID", b"=", before)])

    async def acquire(self, key: bytes, token: bytes, ttl_ms: int) -> bool:
        """Take or renew the lease in one round trip; False while another token holds it."""
        return () in await self.commit_many(lease_steps(key, token, ttl_ms))

    async def release(self, key: bytes, token: bytes) -> None:
        """Give the lease back if ``token`` still holds it."""
        await self.commit(lease_return(key, token))

    async def scan(self, prefix: bytes) -> list[bytes]:
        """All keys that start with ``prefix``, sorted; walks the whole server."""
        with self._errors():
            found = {
                key async for key in self._client.scan_iter(match=starts_with(prefix), count=_SCAN_COUNT)
            }
        return sorted(found)

    async def info(self) -> StoreInfo:
        """State of the server or of all primaries; never raises."""
        kind = "redis-cluster" if self._is_cluster else "redis"
        try:
            return health.summary(await self._nodes(), cluster=self._is_cluster)
        except StoreUnavailable as error:
            return StoreInfo(kind, "", 0, "unknown while it is away", False, str(error))

    async def close(self) -> None:
        """Release connections."""
        with self._errors():
            await self._client.aclose()

    async def _nodes(self) -> list[health.Node]:
        """The reports of the server, or of each primary of the cluster."""
        targets: list[dict[str, Any]] = [{}]
        with self._errors():
            if self._is_cluster:
                await self._client.initialize()
                targets = [{"target_nodes": node} for node in self._client.get_primaries()]
            nodes = []
            for target in targets:
                report = await self._client.execute_command("INFO", **target)
                at = target["target_nodes"].name if target else self._address
                nodes.append(health.Node(at, report, await self._configuration(target)))
            return nodes

    async def _configuration(self, target: dict[str, Any]) -> dict[str, str]:
        names = ("appendfsync", "save", "maxmemory-policy")
        try:
            answer = await self._client.execute_command("CONFIG GET", *names, **target)
        except driver.BusyLoadingError:
            raise
        except driver.ResponseError:  # managed servers forbid CONFIG; INFO says enough
            return {}
        return {text(name): text(value) for name, value in answer.items()}

    async def _probe_scripting(self) -> None:
        try:
            await self.commit(Transaction((), (Delete(b"{aggregator}probe"),)))
        except StoreUnavailable as error:
            cause = error.__cause__
            unfit = isinstance(cause, driver.ResponseError) and not isinstance(
                cause, (driver.OutOfMemoryError, driver.ReadOnlyError, driver.ClusterDownError)
            )
            if unfit and not str(cause).startswith(("MISCONF", "NOREPLICAS", "BUSY")):
                raise ConfigurationError(
                    f"store_url: {self._address} does not run scripts ({first_line(cause)}); "
                    "allow EVAL and EVALSHA to this user."
                ) from error
            raise

    async def _send(self, commands: Sequence[Command], *, again: bool = False) -> list[Any]:
        """Replies in the order of ``commands``, one round trip; the first error of any is raised.

        ``again``: repeat once when the connection breaks. Only for commands that change nothing.
        """
        if not commands:
            return []
        with self._errors():
            if self._places is None:
                return await self._round_trip(commands, again)
            async with asyncio.timeout(self._wait_s):
                await self._places.acquire()
            try:
                return await self._round_trip(commands, again)
            finally:
                self._places.release()

    async def _round_trip(self, commands: Sequence[Command], again: bool) -> list[Any]:
        try:
            return await self._exchange(commands)
        except driver.BusyLoadingError:
            raise
        except driver.ConnectionError:
            if not again:
                raise
        return await self._exchange(commands)

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        if len(commands) == 1:
            return [await self._client.execute_command(*commands[0])]
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        answers: list[Any] = await pipeline.execute(raise_on_error=False)
        failures = [answer for answer in answers if isinstance(answer, Exception)]
        if failures:
            if self._is_cluster and any(isinstance(failure, STALE_TOPOLOGY) for failure in failures):
                # Without retries the driver's pipeline forgets to look for the new primaries.
                self._client._initialize = True
            raise failures[0]
        return answers

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FAILURES as error:
            cause = innermost(error)
            raise StoreUnavailable(sentence(cause, self._address)) from cause
