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
from aggregator.store.errors import STALE_TOPOLOGY, innermost, is_failure, sentence
from aggregator.store.health import Node
from aggregator.store.pipelining import PIPES, Pipes
from aggregator.store.protocol import Command, first_key, text

_FILES = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
_HEALTH_CHECK_S = 25  # below the idle limits of usual load balancers
_SCAN_COUNT = 1000
_ROLE_IS_KNOWN_S = 1.0
# What of a server's configuration ``health.py`` judges by.
_JUDGED = (
    "appendfsync",
    "save",
    "maxmemory-policy",
    "min-replicas-to-write",
    "stop-writes-on-bgsave-error",
)


def open_link(
    url: str, *, socket_timeout_s: float = 5.0, max_connections: int = 64, connect_timeout_s: float = 2.0
) -> Link:
    """A way to the store at ``url``: redis://, rediss://, unix:// or redis+cluster:// (also rediss+cluster://).

    Connects at the first call. ``max_connections`` is per server; further callers wait up to ``socket_timeout_s`` for a free one.
    Raises ConfigurationError when the url cannot be understood.
    """
    plain = url.replace("+cluster://", "://", 1)
    _check_files(plain)
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
            pool.make_connection()  # type: ignore[no-untyped-call]  # connects to nobody, but refuses what it does not know
            pipes = Pipes(
                pool.make_connection,
                count=min(PIPES, max_connections),
                timeout_s=socket_timeout_s,
                idle_s=_HEALTH_CHECK_S,
            )
            return Link(Redis.from_pool(pool), address, pipes=pipes)
        cluster = RedisCluster.from_url(plain, max_connections=max_connections + 4, **options)
    except (ValueError, TypeError, driver.RedisError, driver.RedisClusterException) as error:
        raise ConfigurationError(
            "store_url: expected redis://host:port/0, rediss://, unix:///path or redis+cluster://host:port, "
            "with options of redis-py behind ? if any."
        ) from error
    return Link(cluster, address, places=max_connections, wait_s=socket_timeout_s)


def _check_files(url: str) -> None:
    """What is named in the address for TLS must be there. Raises ConfigurationError."""
    for name, value in parse_qsl(urlsplit(url).query):
        if name in _FILES and not os.access(value, os.R_OK):
            raise ConfigurationError(f"store_url: the file {value} ({name}) cannot be read.")


def _address(url: str) -> str:
    """Where ``url`` points, without the password."""
    parts: dict[str, Any] = dict(parse_url(url))
    if "path" in parts:
        return str(parts["path"])
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 6379)}"


class Link:
    """Safe for any number of tasks of one event loop. Every failure is raised as StoreUnavailable."""

    def __init__(
        self,
        client: Redis | RedisCluster,
        address: str,
        *,
        places: int = 0,
        wait_s: float = 5.0,
        pipes: Pipes | None = None,
    ) -> None:
        self.address = address
        self.is_cluster = isinstance(client, RedisCluster)
        self._client: Any = client
        # A cluster's driver raises at once when its connections are busy; our callers wait instead.
        self._places = asyncio.Semaphore(places) if self.is_cluster else None
        self._wait_s = wait_s
        self._pipes = pipes
        self._role_asked_s = float("-inf")

    async def send(self, commands: Sequence[Command], *, again: bool = False) -> list[Any]:
        """Replies in the order of ``commands``, one round trip; the first error of any is raised.

        ``again``: repeat once when the connection breaks. Only for commands that change nothing.
        """
        if not commands:
            return []
        if self._places is None:
            try:  # not ``_errors``: this is asked once or more for every look-up
                return await self._round_trip(commands, again)
            except Exception as error:
                if not is_failure(error):
                    raise
                raise self._unavailable(error) from innermost(error)
        with self._errors():
            try:
                async with asyncio.timeout(self._wait_s):
                    await self._places.acquire()
            except TimeoutError:
                raise driver.MaxConnectionsError from None
            try:
                return await self._round_trip(commands, again)
            finally:
                self._places.release()

    async def _round_trip(self, commands: Sequence[Command], again: bool) -> list[Any]:
        try:
            return await (self._from_primary(commands) if again else self._exchange(commands))
        except driver.BusyLoadingError:
            raise
        except driver.ReadOnlyError:
            self._role_asked_s = float("-inf")
            raise
        except driver.ConnectionError:
            self._role_asked_s = float("-inf")  # behind the same address there may be another server now
            if not again:
                raise
        return await self._from_primary(commands)

    async def _from_primary(self, commands: Sequence[Command]) -> list[Any]:
        """Reads, refused by a replica; a cluster's replicas refuse by themselves."""
        now_s = time.monotonic()
        if self.is_cluster or now_s < self._role_asked_s + _ROLE_IS_KNOWN_S:
            return await self._exchange(commands)
        self._role_asked_s = now_s
        *answers, report = await self._exchange([*commands, ("INFO", "replication")])
        if b"role:master" not in report:
            raise driver.ReadOnlyError
        return answers

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        if self._pipes is not None:
            answers = await self._pipes.ask(commands)
        else:
            answers = await self._over_the_cluster(commands)
        for command, answer in zip(commands, answers, strict=True):
            if isinstance(answer, Exception):
                if self.is_cluster and isinstance(answer, STALE_TOPOLOGY):
                    self._distrust(first_key(command))
                raise answer
        return answers

    async def _over_the_cluster(self, commands: Sequence[Command]) -> list[Any]:
        await self._locate()
        try:
            if len(commands) == 1:
                return [await self._client.execute_command(*commands[0])]
            pipeline = self._client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            answers: list[Any] = await pipeline.execute(raise_on_error=False)
            return answers
        except STALE_TOPOLOGY:  # a node that takes no new connection fails the whole pipeline
            self._distrust()
            raise
        except (AttributeError, RuntimeError) as error:
            # The driver's refresh of a cluster's map closes connections that a task has just taken: writing
            # to one is an AttributeError of the driver, or a RuntimeError of uvloop.
            raise driver.ConnectionError("closed under way by the driver") from error

    async def _locate(self) -> None:
        """Learn which primaries there are, when that is not known or no longer trusted.

        The driver then asks the first primary for its commands, and asks the same one for ever when
        that is the dead one; so each gets its turn.
        """
        turns = len(self._client.get_primaries())
        while True:
            try:
                await self._client.initialize()
                return
            except (driver.ConnectionError, driver.TimeoutError):
                if not turns:
                    raise
                turns -= 1
                first = self._client.get_primaries()[0]
                self._client.nodes_manager.move_node_to_end_of_cached_nodes(first.name)

    def _distrust(self, key: bytes | None = None) -> None:
        """Look for the primaries anew before the next call: without retries, pipelines forget to.

        ``key``: whose primary failed, where that is known; it is asked last.
        """
        if not self.is_cluster:
            return
        self._client._initialize = True
        node = self._client.get_node_from_key(key) if key is not None else None
        if node is not None:
            self._client.nodes_manager.move_node_to_end_of_cached_nodes(node.name)

    async def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        """All keys that match, of all primaries, up to a thousand at a time; a key may come twice."""
        with self._errors():
            found: list[bytes] = []
            async for key in self._client.scan_iter(match=pattern, count=_SCAN_COUNT):
                found.append(key)
                if len(found) == _SCAN_COUNT:
                    yield found
                    found = []
            yield found

    async def nodes(self) -> list[Node]:
        """The reports of the server, or of each primary of the cluster."""
        targets: list[dict[str, Any]] = [{}]
        with self._errors():
            if self.is_cluster:
                await self._locate()
                targets = [{"target_nodes": node} for node in self._client.get_primaries()]
            nodes = []
            for target in targets:
                report = await self._client.execute_command("INFO", **target)
                if target:
                    report = {**report, **await self._client.execute_command("CLUSTER INFO", **target)}
                if report.get("role") != "master":
                    self._role_asked_s = float("-inf")
                at = target["target_nodes"].name if target else self.address
                nodes.append(Node(at, report, await self._configuration(target)))
            return nodes

    async def _configuration(self, target: dict[str, Any]) -> dict[str, str]:
        try:
            answer = await self._client.execute_command("CONFIG GET", *_JUDGED, **target)
        except driver.BusyLoadingError:
            raise
        except driver.ResponseError:  # managed servers forbid CONFIG; INFO says enough
            return {}
        return {text(name): text(value) for name, value in answer.items()}

    async def close(self) -> None:
        """Release connections. Idempotent."""
        if self._pipes is not None:
            self._pipes.close()
        with self._errors():
            if self.is_cluster:
                self._client._initialize = False  # else the driver takes itself for closed and leaks
            await self._client.aclose()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not is_failure(error):
                raise
            raise self._unavailable(error) from innermost(error)

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        return StoreUnavailable(sentence(innermost(error), self.address))
