"""Getting commands to a server, or to the right servers of a cluster, and their answers or failures back.

Below ``redis.py``, which knows what the commands mean. **Nothing that writes is ever repeated.** When
a connection breaks after a request was sent, nobody can tell whether it was applied, so the driver's
own retries are switched off and the caller gets ``StoreUnavailable``. It may then repeat: a commit
that was applied after all fails its own checks the second time (the buckets have grown, the id is
there), and the layer above, reading again, finds its own article. Plain reads are repeated once on
a broken connection. A server that was made a replica refuses writes by itself, but would go on answering reads,
with what is no longer true: so its role is asked for along with a read, at most once a second.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from redis import exceptions as driver
from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.errors import TOPOLOGY_ERRORS, describe, is_store_failure, root_cause
from aggregator.store.health import Node
from aggregator.store.pipelining import PIPELINED_CONNECTIONS, PipelinedPool
from aggregator.store.protocol import Command, decode_text, first_key

_TLS_FILE_OPTIONS = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
_HEALTH_CHECK_INTERVAL_S = 25  # below the idle limits of usual load balancers
_KEYS_PER_SCAN_BATCH = 1000
_ROLE_CACHE_S = 1.0
# What of a server's configuration ``health.py`` judges by.
_CHECKED_SETTINGS = (
    "appendfsync",
    "save",
    "maxmemory-policy",
    "min-replicas-to-write",
    "stop-writes-on-bgsave-error",
)


def open_client(
    url: str, *, socket_timeout_s: float = 5.0, max_connections: int = 64, connect_timeout_s: float = 2.0
) -> RedisClient:
    """A way to the store at ``url``: redis://, rediss://, unix:// or redis+cluster:// (also rediss+cluster://).

    Connects at the first call. ``max_connections`` is per server; further callers wait up to ``socket_timeout_s`` for a free one.
    Raises ConfigurationError when the url cannot be understood.
    """
    plain = url.replace("+cluster://", "://", 1)
    _check_tls_files(plain)
    options: dict[str, Any] = {
        "socket_timeout": socket_timeout_s,
        "socket_connect_timeout": min(connect_timeout_s, socket_timeout_s),
        "health_check_interval": _HEALTH_CHECK_INTERVAL_S,
        "decode_responses": False,
        "protocol": 2,  # nothing of RESP3 is needed, and its push messages hide a dead idle connection
        "retry": Retry(NoBackoff(), 0),
    }
    try:
        address = _address_of(plain)
        if plain == url:
            pool = BlockingConnectionPool.from_url(
                url, max_connections=max_connections, timeout=socket_timeout_s, **options
            )
            pool.make_connection()  # type: ignore[no-untyped-call]  # connects to nobody, but refuses what it does not know
            pipes = PipelinedPool(
                pool.make_connection,
                count=min(PIPELINED_CONNECTIONS, max_connections),
                timeout_s=socket_timeout_s,
                max_idle_s=_HEALTH_CHECK_INTERVAL_S,
            )
            return RedisClient(Redis.from_pool(pool), address, pool=pipes)
        cluster = RedisCluster.from_url(plain, max_connections=max_connections + 4, **options)
    except (ValueError, TypeError, driver.RedisError, driver.RedisClusterException) as error:
        raise ConfigurationError(
            "store_url: expected redis://host:port/0, rediss://, unix:///path or redis+cluster://host:port, "
            "with options of redis-py behind ? if any."
        ) from error
    return RedisClient(cluster, address, max_concurrency=max_connections, acquire_timeout_s=socket_timeout_s)


def _check_tls_files(url: str) -> None:
    """What is named in the address for TLS must be there. Raises ConfigurationError."""
    for name, value in parse_qsl(urlsplit(url).query):
        if name in _TLS_FILE_OPTIONS and not os.access(value, os.R_OK):
            raise ConfigurationError(f"store_url: the file {value} ({name}) cannot be read.")


def _address_of(url: str) -> str:
    """Where ``url`` points, without the password."""
    parts: dict[str, Any] = dict(parse_url(url))
    if "path" in parts:
        return str(parts["path"])
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 6379)}"


class RedisClient:
    """Safe for any number of tasks of one event loop. Every failure is raised as StoreUnavailable."""

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
        # A cluster's driver raises at once when its connections are busy; our callers wait instead.
        self._concurrency = asyncio.Semaphore(max_concurrency) if self.is_cluster else None
        self._acquire_timeout_s = acquire_timeout_s
        self._pool = pool
        self._role_checked_s = float("-inf")

    async def send(self, commands: Sequence[Command], *, retry_read: bool = False) -> list[Any]:
        """Replies in the order of ``commands``, one round trip; the first error of any is raised.

        ``again``: repeat once when the connection breaks. Only for commands that change nothing.
        """
        if not commands:
            return []
        if self._concurrency is None:
            try:  # not ``_errors``: this is asked once or more for every look-up
                return await self._round_trip(commands, retry_read)
            except Exception as error:
                if not is_store_failure(error):
                    raise
                raise self._unavailable(error) from root_cause(error)
        with self._translate_errors():
            try:
                async with asyncio.timeout(self._acquire_timeout_s):
                    await self._concurrency.acquire()
            except TimeoutError:
                raise driver.MaxConnectionsError from None
            try:
                return await self._round_trip(commands, retry_read)
            finally:
                self._concurrency.release()

    async def _round_trip(self, commands: Sequence[Command], retry_read: bool) -> list[Any]:
        try:
            return await (self._read_from_primary(commands) if retry_read else self._execute(commands))
        except driver.BusyLoadingError:
            raise
        except driver.ReadOnlyError:
            self._role_checked_s = float("-inf")
            raise
        except driver.ConnectionError:
            self._role_checked_s = float("-inf")  # behind the same address there may be another server now
            if not retry_read:
                raise
        return await self._read_from_primary(commands)

    async def _read_from_primary(self, commands: Sequence[Command]) -> list[Any]:
        """Reads, refused by a replica; a cluster's replicas refuse by themselves."""
        now_s = time.monotonic()
        if self.is_cluster or now_s < self._role_checked_s + _ROLE_CACHE_S:
            return await self._execute(commands)
        self._role_checked_s = now_s
        *answers, report = await self._execute([*commands, ("INFO", "replication")])
        if b"role:master" not in report:
            raise driver.ReadOnlyError
        return answers

    async def _execute(self, commands: Sequence[Command]) -> list[Any]:
        if self._pool is not None:
            answers = await self._pool.execute(commands)
        else:
            answers = await self._execute_on_cluster(commands)
        for command, answer in zip(commands, answers, strict=True):
            if isinstance(answer, Exception):
                if self.is_cluster and isinstance(answer, TOPOLOGY_ERRORS):
                    self._invalidate_topology(first_key(command))
                raise answer
        return answers

    async def _execute_on_cluster(self, commands: Sequence[Command]) -> list[Any]:
        await self._discover_primaries()
        try:
            if len(commands) == 1:
                return [await self._driver_client.execute_command(*commands[0])]
            pipeline = self._driver_client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            answers: list[Any] = await pipeline.execute(raise_on_error=False)
            return answers
        except TOPOLOGY_ERRORS:  # a node that takes no new connection fails the whole pipeline
            self._invalidate_topology()
            raise
        except (AttributeError, RuntimeError) as error:
            # The driver's refresh of a cluster's map closes connections that a task has just taken: writing
            # to one is an AttributeError of the driver, or a RuntimeError of uvloop.
            raise driver.ConnectionError("closed under way by the driver") from error

    async def _discover_primaries(self) -> None:
        """Learn which primaries there are, when that is not known or no longer trusted.

        The driver then asks the first primary for its commands, and asks the same one for ever when
        that is the dead one; so each gets its turn.
        """
        turns = len(self._driver_client.get_primaries())
        while True:
            try:
                await self._driver_client.initialize()
                return
            except (driver.ConnectionError, driver.TimeoutError):
                if not turns:
                    raise
                turns -= 1
                first = self._driver_client.get_primaries()[0]
                self._driver_client.nodes_manager.move_node_to_end_of_cached_nodes(first.name)

    def _invalidate_topology(self, key: bytes | None = None) -> None:
        """Look for the primaries anew before the next call: without retries, pipelines forget to.

        ``key``: whose primary failed, where that is known; it is asked last.
        """
        if not self.is_cluster:
            return
        self._driver_client._initialize = True
        node = self._driver_client.get_node_from_key(key) if key is not None else None
        if node is not None:
            self._driver_client.nodes_manager.move_node_to_end_of_cached_nodes(node.name)

    async def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        """All keys that match, of all primaries, up to a thousand at a time; a key may come twice."""
        with self._translate_errors():
            found: list[bytes] = []
            async for key in self._driver_client.scan_iter(match=pattern, count=_KEYS_PER_SCAN_BATCH):
                found.append(key)
                if len(found) == _KEYS_PER_SCAN_BATCH:
                    yield found
                    found = []
            yield found

    async def nodes(self) -> list[Node]:
        """The reports of the server, or of each primary of the cluster."""
        targets: list[dict[str, Any]] = [{}]
        with self._translate_errors():
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
                at = target["target_nodes"].name if target else self.address
                nodes.append(Node(at, report, await self._read_config(target)))
            return nodes

    async def _read_config(self, target: dict[str, Any]) -> dict[str, str]:
        try:
            answer = await self._driver_client.execute_command("CONFIG GET", *_CHECKED_SETTINGS, **target)
        except driver.BusyLoadingError:
            raise
        except driver.ResponseError:  # managed servers forbid CONFIG; INFO says enough
            return {}
        return {decode_text(name): decode_text(value) for name, value in answer.items()}

    async def close(self) -> None:
        """Release connections. Idempotent."""
        if self._pool is not None:
            self._pool.close()
        with self._translate_errors():
            if self.is_cluster:
                self._driver_client._initialize = False  # else the driver takes itself for closed and leaks
            await self._driver_client.aclose()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not is_store_failure(error):
                raise
            raise self._unavailable(error) from root_cause(error)

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        return StoreUnavailable(describe(root_cause(error), self.address))
