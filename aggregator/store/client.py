"""Client connections to a Redis server or to the primaries of a cluster: sending, retries, error translation.

**Writes are never retried.** When a connection breaks after a request was sent, it is unknown whether it was
applied, so the retries of redis-py are disabled and StoreUnavailable is raised. The caller may repeat the
operation: a commit that was applied fails its own checks the second time, and the layer above reads again and
finds its own article. Plain reads are retried once on a broken connection. A server that was demoted to a
replica still answers reads, with stale data: so reads verify its role and which server it is, at most once a
second. A replica is left at once: all connections are closed, and the next ones ask DNS or Sentinel again. So
is a server that new connections do not lead to any more (``leave_moved_server``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from redis import exceptions as driver
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis, RedisCluster
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.diagnostics import (
    DRIVER_ERRORS,
    TOPOLOGY_ERRORS,
    Node,
    describe,
    is_store_failure,
    refuses_writes,
    root_cause,
)
from aggregator.store.disk import read_disk_space
from aggregator.store.pipelining import PIPELINED_CONNECTIONS, Command, PipelinedPool

_TLS_FILE_OPTIONS = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
_HEALTH_CHECK_INTERVAL_S = 25  # below the idle timeout of common load balancers
_KEYS_PER_SCAN_BATCH = 1000
_ROLE_CACHE_S = 1.0
# The part of a server's configuration that ``diagnostics.py`` evaluates.
_CHECKED_SETTINGS = (
    "appendfsync",
    "save",
    "maxmemory-policy",
    "min-replicas-to-write",
    "stop-writes-on-bgsave-error",
    "auto-aof-rewrite-percentage",
    "dir",
)


def open_client(
    url: str, *, socket_timeout_s: float = 5.0, max_connections: int = 64, connect_timeout_s: float = 2.0
) -> RedisClient:
    """Create a client for ``url``, which connects at its first call. Raises ConfigurationError.

    ``max_connections`` is per server; further callers wait up to ``socket_timeout_s`` for a free one.
    """
    plain = url.replace("+cluster://", "://", 1).replace("+sentinel://", "://", 1)
    for name, value in parse_qsl(urlsplit(plain).query):
        if name in _TLS_FILE_OPTIONS and not os.access(value, os.R_OK):
            raise ConfigurationError(f"store_url: the file {value} ({name}) cannot be read.")
    options: dict[str, Any] = {
        "socket_timeout": socket_timeout_s,
        "socket_connect_timeout": min(connect_timeout_s, socket_timeout_s),
        "health_check_interval": _HEALTH_CHECK_INTERVAL_S,
        "decode_responses": False,
        "protocol": 2,  # RESP3 is not needed, and its push messages hide a dead idle connection
        "retry": Retry(NoBackoff(), 0),
    }
    try:
        pool: ConnectionPool
        if "+sentinel://" in url:
            pool, address = _sentinel_pool(plain, {**options, "max_connections": max_connections})
        else:
            parts: dict[str, Any] = dict(parse_url(plain))
            address = str(parts.get("path") or f"{parts.get('host', 'localhost')}:{parts.get('port', 6379)}")
            pool = BlockingConnectionPool.from_url(
                plain, max_connections=max_connections, timeout=socket_timeout_s, **options
            )
        if "+cluster://" not in url:
            # Does not connect, but rejects unknown options.
            pool.make_connection()  # type: ignore[no-untyped-call]  # redis-py has no annotation here
            pipelined = PipelinedPool(
                pool.make_connection,
                count=min(PIPELINED_CONNECTIONS, max_connections),
                timeout_s=socket_timeout_s,
                max_idle_s=_HEALTH_CHECK_INTERVAL_S,
            )
            return RedisClient(Redis.from_pool(pool), address, pool=pipelined)
        cluster = RedisCluster.from_url(plain, max_connections=max_connections + 4, **options)
    except (ValueError, TypeError, driver.RedisError, driver.RedisClusterException) as error:
        raise ConfigurationError(
            "store_url: expected redis://host:port/0, rediss://, unix:///path, redis+cluster://host:port or "
            "redis+sentinel://host:26379,host:26379/name/0, with options of redis-py after ? if any."
        ) from error
    return RedisClient(cluster, address, max_concurrency=max_connections, acquire_timeout_s=socket_timeout_s)


def _sentinel_pool(url: str, options: dict[str, Any]) -> tuple[ConnectionPool, str]:
    """Connections to the primary that Sentinels name: redis://USER:PASSWORD@HOST:PORT,.../NAME/DATABASE?...

    ``sentinel_username`` and ``sentinel_password`` among the options are those of the Sentinels.
    """
    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    name, _, database = parts.path.strip("/").partition("/")
    sentinels = [(p.hostname or "localhost", p.port or 26379) for p in map(urlsplit, _each(hosts))]
    own = dict(
        parse_url(f"{parts.scheme}://{login + '@' if login else ''}localhost/{database}?{parts.query}")
    )
    at_sentinel = {k: own.pop(f"sentinel_{k}") for k in ("username", "password") if f"sentinel_{k}" in own}
    is_encrypted, _ = own.pop("connection_class", None) is not None, (own.pop("host"), own.pop("port", None))
    if not name:
        raise ValueError(url)
    tls = {k: v for k, v in own.items() if k.startswith("ssl")} | ({"ssl": True} if is_encrypted else {})
    limits = {k: v for k, v in options.items() if k.startswith("socket_")}
    sentinel, sentinel_pool = cast(Any, Sentinel), cast(Any, SentinelConnectionPool)  # without annotations
    manager = sentinel(sentinels, sentinel_kwargs={**at_sentinel, **limits, **tls})
    pool = sentinel_pool(name, manager, ssl=is_encrypted, **own, **options)
    return pool, f"{hosts} ({name})"


def _each(hosts: str) -> list[str]:
    return [f"//{host}" for host in hosts.split(",")]


class RedisClient:
    """Sends commands of any number of tasks of one event loop; every failure is StoreUnavailable."""

    def __init__(
        self,
        driver_client: Redis | RedisCluster,
        address: str,
        *,
        max_concurrency: int = 0,
        acquire_timeout_s: float = 5.0,
        pool: PipelinedPool | None = None,
    ) -> None:
        self.address = address
        self.is_cluster = isinstance(driver_client, RedisCluster)
        self._driver_client: Any = driver_client
        self._concurrency = asyncio.Semaphore(max_concurrency)
        self._acquire_timeout_s = acquire_timeout_s
        self._pool = pool
        self._role_checked_s = self._reconnected_s = float("-inf")
        self._run_id: bytes | None = None  # of the server that answers on the open connections
        self._translated_errors = _TranslatedErrors(address)

    async def run_script(self, source: bytes, sha1: str, calls: Sequence[Command]) -> list[Any]:
        """Replies of a script that is called once per element of ``calls`` (number of keys, keys, values).

        In one round trip, without the source. A server that does not have the script (since a restart)
        refuses calls, which are repeated with the source. Should another process load it between two calls,
        the second one is applied before the first one is repeated: a call that needs the effect of another
        one must check it.
        """
        replies = await self.send([("EVALSHA", sha1, *call) for call in calls])
        refused = [i for i, reply in enumerate(replies) if isinstance(reply, driver.NoScriptError)]
        if refused:
            repeated = await self.send([("EVAL", source, *calls[i]) for i in refused])
            for i, reply in zip(refused, repeated, strict=True):
                replies[i] = reply
        return replies

    async def send(self, commands: Sequence[Command], *, retry_read: bool = False) -> list[Any]:
        """Replies in the order of ``commands``, in one round trip; raises the first error of any command.

        ``retry_read``: retry once when the connection breaks. Only for commands that change nothing.
        """
        if not commands:
            return []
        with self._translated_errors:
            try:
                return await (self._read_from_primary(commands) if retry_read else self._execute(commands))
            except (driver.BusyLoadingError, driver.MaxConnectionsError):
                raise
            except (driver.ReadOnlyError, driver.ConnectionError) as error:
                self._role_checked_s = float("-inf")  # another server may answer at this address now
                if isinstance(error, driver.ReadOnlyError):
                    await self.reconnect()
                if not retry_read:
                    raise
            return await self._read_from_primary(commands)

    async def reconnect(self) -> None:
        """Close all connections, at most once a second; the next ones go where the address leads then."""
        now_s = time.monotonic()
        if now_s < self._reconnected_s + _ROLE_CACHE_S:
            return
        self._reconnected_s, self._role_checked_s, self._run_id = now_s, float("-inf"), None
        with contextlib.suppress(*DRIVER_ERRORS):
            if self.is_cluster:
                await self._driver_client.aclose()
            else:
                await self._driver_client.connection_pool.disconnect(inuse_connections=False)
        if self._pool is not None:
            self._pool.close()

    async def leave_moved_server(self) -> None:
        """Reconnect if a new connection leads to another server than the open ones; not on a cluster."""
        if self._pool is None or self._run_id is None:
            return
        with self._translated_errors:
            if _run_id(await self._pool.ask_anew(("INFO", "server"))) not in (self._run_id, None):
                await self.reconnect()

    async def _read_from_primary(self, commands: Sequence[Command]) -> list[Any]:
        """Replicas of a cluster reject reads themselves."""
        now_s = time.monotonic()
        if self.is_cluster or now_s < self._role_checked_s + _ROLE_CACHE_S:
            return await self._execute(commands)
        *replies, report = await self._execute([*commands, ("INFO",)])
        if b"role:master" not in report:
            raise driver.ReadOnlyError
        self._role_checked_s = now_s
        former, self._run_id = self._run_id, _run_id(report)
        if former not in (self._run_id, None):  # others may still lead to the former server
            await self.reconnect()
        return replies

    async def _execute(self, commands: Sequence[Command]) -> list[Any]:
        """Replies; a refusal for want of a script is one of them, any other error is raised."""
        if self._pool is not None:
            replies = await self._pool.execute(commands)
        else:
            replies = await self._execute_when_free(commands)
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(reply, Exception) and not isinstance(reply, driver.NoScriptError):
                if self.is_cluster and isinstance(reply, TOPOLOGY_ERRORS):
                    self._invalidate_topology(first_key(command))
                raise reply
        return replies

    async def _execute_when_free(self, commands: Sequence[Command]) -> list[Any]:
        """The cluster client raises immediately if its connections are busy; here callers wait."""
        try:
            async with asyncio.timeout(self._acquire_timeout_s):
                await self._concurrency.acquire()
        except TimeoutError:
            raise driver.MaxConnectionsError from None
        try:
            return await self._execute_on_cluster(commands)
        finally:
            self._concurrency.release()

    async def _execute_on_cluster(self, commands: Sequence[Command]) -> list[Any]:
        await self._discover_primaries()
        try:
            if len(commands) == 1:
                try:
                    return [await self._driver_client.execute_command(*commands[0])]
                except driver.NoScriptError as refusal:
                    return [refusal]
            pipeline = self._driver_client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
            return replies
        except TOPOLOGY_ERRORS:  # a node that accepts no connection fails the whole pipeline
            self._invalidate_topology()
            raise
        except (AttributeError, RuntimeError) as error:
            # When redis-py refreshes its slot map, it closes connections that tasks have just acquired:
            # writing to one raises an AttributeError in redis-py or a RuntimeError in uvloop.
            raise driver.ConnectionError("connection closed by a refresh of the slot map") from error

    async def _discover_primaries(self) -> None:
        """Refresh the slot map if it is unknown or was invalidated.

        redis-py keeps asking the first primary, also if it is dead; so after a failure that is moved back.
        """
        remaining = len(self._driver_client.get_primaries())
        while True:
            try:
                await self._driver_client.initialize()
                return
            except (driver.ConnectionError, driver.TimeoutError):
                if not remaining:
                    raise
                remaining -= 1
                first = self._driver_client.get_primaries()[0]
                self._driver_client.nodes_manager.move_node_to_end_of_cached_nodes(first.name)

    def _invalidate_topology(self, key: bytes | None = None) -> None:
        """Refresh the slot map before the next call; the primary of ``key``, which failed, is asked last."""
        if not self.is_cluster:
            return
        self._driver_client._initialize = True
        node = self._driver_client.get_node_from_key(key) if key is not None else None
        if node is not None:
            self._driver_client.nodes_manager.move_node_to_end_of_cached_nodes(node.name)

    async def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        """Keys of all primaries that match, up to 1,000 at a time; a key may repeat."""
        with self._translated_errors:
            found: list[bytes] = []
            async for key in self._driver_client.scan_iter(match=pattern, count=_KEYS_PER_SCAN_BATCH):
                found.append(key)
                if len(found) == _KEYS_PER_SCAN_BATCH:
                    yield found
                    found = []
            yield found

    async def nodes(self) -> list[Node]:
        """INFO and CONFIG of the server, or of each primary of the cluster."""
        targets: list[dict[str, Any]] = [{}]
        with self._translated_errors:
            if self.is_cluster:
                await self._discover_primaries()
                targets = [{"target_nodes": node} for node in self._driver_client.get_primaries()]
            nodes = []
            for target in targets:
                report = await self._driver_client.execute_command("INFO", **target)
                if target:
                    report = {**report, **await self._driver_client.execute_command("CLUSTER INFO", **target)}
                if report.get("role") != "master":
                    self._role_checked_s = float("-inf")
                address = target["target_nodes"].name if target else self.address
                config = await self._read_config(target)
                # A server behind a unix socket is on this machine, so the space on its disk can be read.
                if self.address.startswith("/") and "dir" in config:
                    self._translated_errors.directory = Path(config["dir"])
                directory = self._translated_errors.directory
                disk = read_disk_space(directory) if directory is not None else None
                nodes.append(Node(address, report, config, disk))
            return nodes

    async def _read_config(self, target: dict[str, Any]) -> dict[str, str]:
        try:
            reply = await self._driver_client.execute_command("CONFIG GET", *_CHECKED_SETTINGS, **target)
        except driver.ResponseError as error:
            if isinstance(error, driver.BusyLoadingError):
                raise
            return {}  # managed servers forbid CONFIG; INFO suffices
        return {decode_text(name): decode_text(value) for name, value in reply.items()}

    async def close(self) -> None:
        """Release connections. Idempotent."""
        if self._pool is not None:
            self._pool.close()
        with self._translated_errors:
            if self.is_cluster:
                self._driver_client._initialize = False  # else redis-py believes it is closed, and leaks
            await self._driver_client.aclose()


def _run_id(report: bytes) -> bytes | None:
    _, _, rest = report.partition(b"run_id:")
    return rest.split(b"\r", 1)[0] or None


def first_key(command: Command) -> bytes:
    """The first key of a command."""
    key: bytes = command[3 if command[0] in ("EVAL", "EVALSHA") else 1]
    return key


def decode_text(value: bytes | str) -> str:
    """A reply that is a name or a number, not data, as text."""
    return value.decode() if isinstance(value, bytes) else value


class _TranslatedErrors(AbstractContextManager[object]):
    """Turns failures of the store into StoreUnavailable. A class, not a generator: it wraps every look-up.

    ``directory``: that of the server's data, once it is known and on this machine.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self.directory: Path | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and is_store_failure(error):
            cause = root_cause(error)
            if self.directory is not None and refuses_writes(cause):
                disk = read_disk_space(self.directory)
                if disk is not None and not disk.has_recovered:
                    raise StoreUnavailable(disk.full_message) from cause
            raise StoreUnavailable(describe(cause, self._address)) from cause
