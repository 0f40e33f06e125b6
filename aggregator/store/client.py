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
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from redis import exceptions as driver
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import PipelineCommand
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.address import OWN_OPTIONS, URL_FORMS, StoreAddress, parse_address
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

_HEALTH_CHECK_INTERVAL_S = 25  # below the idle timeout of common load balancers
_KEYS_PER_SCAN_BATCH = 1000
_WITHOUT_KEYS = ("INFO", "SCAN", "SELECT", "SWAPDB", "FLUSHDB")
_ROLE_CACHE_S = _PROBE_TIMEOUT_S = 1.0
_WAIT_MS = 2000  # for replicas; below the time limits of replies and requests
_LEAVING_S = 10.0  # one that left may have been promoted: until then those that remain are not all
_HAS_WAITAOF = rb"redis_version\W+(7\.[2-9]|[89]|\d\d)"
# What a user of the store must be permitted: the service and its commands, then the driver on a cluster.
STORE_RIGHTS = (
    "+mget +get +getrange +strlen +exists +set +append +del +unlink +pttl +scan +xadd +xrange +xrevrange "
    "+xlen +xtrim +xsetid +xinfo|stream +eval +evalsha +time +info +config|get +ping +select +wait +waitaof "
    "+dbsize +sync +replconf +client|setinfo"
)
CLUSTER_RIGHTS = "+cluster|slots +cluster|shards +cluster|info +command +asking +readonly"
# The part of a server's configuration that ``diagnostics.py`` evaluates.
_CHECKED_SETTINGS = (
    "appendfsync save maxmemory-policy min-replicas-to-write stop-writes-on-bgsave-error "
    "auto-aof-rewrite-percentage dir"
)


def open_client(
    url: str, *, socket_timeout_s: float = 5.0, max_connections: int = 64, connect_timeout_s: float = 2.0
) -> RedisClient:
    """Create a client for ``url``, which connects at its first call. Raises ConfigurationError.

    ``max_connections`` is per server; further callers wait up to ``socket_timeout_s`` for a free one.
    """
    at = parse_address(url)
    options: dict[str, Any] = {
        "socket_timeout": socket_timeout_s,
        "socket_connect_timeout": min(connect_timeout_s, socket_timeout_s),
        "health_check_interval": _HEALTH_CHECK_INTERVAL_S,
        "driver_info": DriverInfo(),  # made once: it reads the package's metadata for 1 ms
        "protocol": 2,  # RESP3 is not needed, and its push messages hide a dead idle connection
        "retry": Retry(NoBackoff(), 0),
    }
    try:
        if at.is_cluster:
            cluster = RedisCluster.from_url(at.url, max_connections=max_connections + 4, **options)
            return RedisClient(cluster, at, max_connections, socket_timeout_s)
        if at.name:
            pool = _sentinel_pool(at, options | {"max_connections": max_connections})
        else:
            pool = BlockingConnectionPool.from_url(
                at.url, max_connections=max_connections, timeout=socket_timeout_s, **options
            )
        # Does not connect, but rejects unknown options.
        pool.make_connection()  # type: ignore[no-untyped-call]  # redis-py has no annotation here
    except (ValueError, TypeError, driver.RedisError, driver.RedisClusterException) as error:
        unknown = str(error).partition("unexpected keyword argument ")[2]
        known = f"{', '.join(OWN_OPTIONS)} or an option of redis-py"
        raise ConfigurationError(
            f"store_url: there is no option {unknown}; expected {known}." if unknown else URL_FORMS
        ) from error
    pipelined = PipelinedPool(
        pool.make_connection,
        count=min(PIPELINED_CONNECTIONS, max_connections),
        timeout_s=socket_timeout_s,
        max_idle_s=_HEALTH_CHECK_INTERVAL_S,
    )
    return RedisClient(Redis.from_pool(pool), at, pool=pipelined)


def _sentinel_pool(at: StoreAddress, options: dict[str, Any]) -> ConnectionPool:
    """Connections to the primary that the Sentinels name when each is opened."""
    own = {k: v for k, v in parse_url(at.url).items() if k not in ("host", "port", "connection_class")}
    limits = {k: v for k, v in options.items() if k.startswith("socket_")}
    sentinel, sentinel_pool = cast(Any, Sentinel), cast(Any, SentinelConnectionPool)  # without annotations
    manager = sentinel(at.sentinels, sentinel_kwargs=at.sentinel_options | limits)
    found: ConnectionPool = sentinel_pool(at.name, manager, ssl=at.url.startswith("rediss"), **own, **options)
    return found


class RedisClient:
    """Sends commands of any number of tasks of one event loop; every failure is StoreUnavailable."""

    def __init__(
        self,
        driver_client: Redis | RedisCluster,
        at: StoreAddress,
        max_concurrency: int = 0,
        acquire_timeout_s: float = 5.0,
        *,
        pool: PipelinedPool | None = None,
    ) -> None:
        self.address, self.prefix, self.is_cluster = at.shown, at.prefix, at.is_cluster
        self.replicates = at.replicas != 0
        self._replicas = defaultdict[str, _Replicas](lambda: _Replicas(at.replicas))
        self._driver_client: Any = driver_client
        self._concurrency = asyncio.Semaphore(max_concurrency)
        self._acquire_timeout_s = acquire_timeout_s
        self._pool = pool
        self._role_checked_s = self._reconnected_s = float("-inf")
        self._run_id: bytes | None = None  # of the server that answers on the open connections
        self._history: bytes | None = None  # its replication id
        self.is_promoted = False  # whether it was a replica of the server before it
        self._translated_errors = _TranslatedErrors(at.shown)

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
        if self.prefix:
            commands = [with_prefix(command, self.prefix) for command in commands]
        with self._translated_errors:
            try:
                if retry_read:
                    return await self._read_from_primary(commands)
                # On one server, what precedes a commit is replicated before it.
                is_commit = commands[0][0] in ("EVALSHA", "EVAL") or (
                    self.is_cluster and commands[0][0] == "SET"
                )
                wait = is_commit and self.replicates
                return await (self._replicate(commands) if wait else self._execute(commands))
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
        for replicas in self._replicas.values():
            replicas.complete_s = float("-inf")  # the next server has others
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
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                report = await self._pool.ask_anew(("INFO", "server"))
            if _value(report, b"run_id") not in (self._run_id, None):
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
        former, self._run_id = self._run_id, _value(report, b"run_id")
        own, taken_over = _value(report, b"master_replid"), _value(report, b"master_replid2")
        self.is_promoted = taken_over == self._history or (self.is_promoted and own == self._history)
        self._history = own
        self._replicas[""].note(report)
        if former not in (self._run_id, None):  # others may still lead to the former server
            await self.reconnect()
        return replies

    async def _replicate(self, commands: Sequence[Command]) -> list[Any]:
        """As ``_execute``; the replicas have the writes then, on their disks if the server has a log."""
        if self.is_cluster:
            await self._discover_primaries()  # first: after a failover another node would confirm
            nodes = {self._driver_client.get_node_from_key(first_key(c)): first_key(c) for c in commands}
            replies = await self._execute(commands)
            await asyncio.gather(*(self._wait_on_node(node, key) for node, key in nodes.items()))
            return replies
        replicas = self._replicas[""]
        self._require(replicas, replicas.connected)  # else nothing is sent
        replies = await self._execute([*commands, *replicas.waits])
        if not any(isinstance(reply, driver.NoScriptError) for reply in replies):  # else it is repeated
            self._require(replicas, replies[-1])
        return replies[: len(commands)]

    async def _wait_on_node(self, node: Any, key: bytes) -> None:
        """Wait for a write after that of ``key``: a server waits for those of the same connection only."""
        tag = key[: key.index(b"}") + 1] if key.startswith(b"{") else b"{%s}" % key
        replicas = self._replicas[node.name]
        replicas.note(repr(await node.execute_command("INFO")).encode())
        self._require(replicas, replicas.connected)
        probe = ("SET", tag + b"replicated", b"", "PX", 1000)
        sent = [PipelineCommand(i, *command) for i, command in enumerate((probe, *replicas.waits))]
        if await node.execute_pipeline(sent):
            raise next(one.result for one in sent if isinstance(one.result, Exception))
        self._require(replicas, sent[-1].result)

    def _require(self, replicas: _Replicas, found: Any) -> None:
        confirmed = found[1] if isinstance(found, list) else found
        if confirmed < replicas.required:
            self._role_checked_s = float("-inf")  # count the connected ones again
            raise StoreUnavailable(
                f"Of {replicas.required} replicas that must confirm a write (replicated), the store at "
                f"{self.address} has {confirmed}; it may have been applied, and may be repeated."
            )

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
        self._driver_client._initialize = True
        node = self._driver_client.get_node_from_key(key) if key is not None else None
        if node is not None:
            self._driver_client.nodes_manager.move_node_to_end_of_cached_nodes(node.name)

    async def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        """Keys of all primaries that match, up to 1,000 at a time; a key may repeat."""
        length = len(self.prefix)
        with self._translated_errors:
            found: list[bytes] = []
            keys = self._driver_client.scan_iter(match=self.prefix + pattern, count=_KEYS_PER_SCAN_BATCH)
            async for key in keys:
                found.append(key[length:])
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
        names = _CHECKED_SETTINGS.split()
        try:
            reply = await self._driver_client.execute_command("CONFIG GET", *names, **target)
        except driver.ResponseError:
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
            pool: Any = getattr(self._driver_client, "connection_pool", None)
            for sentinel in pool.sentinel_manager.sentinels if hasattr(pool, "sentinel_manager") else ():
                await sentinel.aclose()


class _Replicas:
    """Those of a server, "", or of a node, its name. ``number``: how many confirm a commit; None: all."""

    def __init__(self, number: int | None) -> None:
        self._number = number
        self.required = self.connected = 1  # those that must confirm a commit, and those there are
        self.complete_s = float("-inf")  # last time that those required were connected
        self.waits: list[Command] = [("WAIT", 1, _WAIT_MS)]

    def note(self, report: bytes) -> None:
        """Take in what the server reports (INFO)."""
        has_log = re.search(rb"aof_enabled\W+1", report) and re.search(_HAS_WAITAOF, report)
        self.connected = len(re.findall(rb"state\W+online", report))
        if self._number is not None:
            self.required = self._number
        elif self.connected >= self.required or time.monotonic() > self.complete_s + _LEAVING_S:
            self.required, self.complete_s = max(1, self.connected), time.monotonic()
        self.waits = [("WAIT", self.required, _WAIT_MS)]
        if has_log:  # a replica that is asked before it has the write reports its disk a second later
            self.waits.append(("WAITAOF", 0, self.required, _WAIT_MS))


def _value(report: bytes, name: bytes) -> bytes | None:
    _, _, rest = report.partition(b"\n" + name + b":")
    return rest.split(b"\r", 1)[0] or None


def with_prefix(command: Command, prefix: bytes) -> Command:
    """The command with ``prefix`` before each of its keys."""
    name = command[0]
    first, end = (3, 3 + command[2]) if name in ("EVAL", "EVALSHA") else (1, 2)
    if name in ("MGET", "UNLINK", "DEL"):
        end = len(command)
    elif name == "XINFO":
        first, end = 2, 3
    elif name in _WITHOUT_KEYS:
        return command
    return (*command[:first], *(prefix + key for key in command[first:end]), *command[end:])


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
