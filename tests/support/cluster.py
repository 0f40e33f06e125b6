"""Redis cluster on loopback, primaries with a replica each, for tests and benchmarks that kill nodes.

Roles change when a primary dies: use ``primaries`` and ``primary_of``. ``heal`` restarts what was killed.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot

from aggregator.store.embedded import EmbeddedServer
from tests.support.hang_limit import HANG_LIMIT_S

NODE_TIMEOUT_MS = 2000
PORTS = range(10_000, 32_768)


class Cluster:
    """Nodes by port. Created by ``running_cluster``."""

    def __init__(self, servers: dict[int, EmbeddedServer], stack: ExitStack) -> None:
        self.servers = servers
        self._stack = stack

    @property
    def url(self) -> str:
        """URL of one node, from which a client discovers the others."""
        return f"redis+cluster://127.0.0.1:{next(iter(self.servers))}"

    def primaries(self) -> list[int]:
        """Ports of the running nodes that consider themselves primaries."""
        return [port for port in self.servers if self._is_alive(port) and _info(port)["role"] == "master"]

    def primary_of(self, key: bytes) -> int:
        """Port of the primary that stores ``key`` now."""
        slot = key_slot(key)
        with redis.Redis(port=self.primaries()[0]) as client:
            for start, end, primary, *_ in client.execute_command("CLUSTER SLOTS"):
                if start <= slot <= end:
                    return int(primary[1])
        raise LookupError(slot)

    def empty(self) -> None:
        """Delete all keys."""
        for port in self.primaries():
            with redis.Redis(port=port) as client:
                client.flushall()

    def set_failover(self, enabled: bool) -> None:
        """Whether the replica of a killed primary may replace it within seconds; ``heal`` needs that."""
        for port in self.servers:
            if self._is_alive(port):
                _execute(port, "CONFIG SET", "cluster-replica-no-failover", "no" if enabled else "yes")

    def kill(self, port: int) -> None:
        """SIGKILL."""
        server = self.servers[port]
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: server.pid is None, "the node did not end")

    def heal(self) -> None:
        """Restart killed nodes; returns when all nodes agree and every replica follows its primary."""
        for server in self.servers.values():
            server.restart_if_dead()
        until(self.is_whole, "the cluster did not become whole")

    def is_whole(self) -> bool:
        """Whether all nodes run and know one another, all slots are served, all replicas connected."""
        return all(self._is_alive(port) and _is_whole(port, len(self.servers)) for port in self.servers)

    def _is_alive(self, port: int) -> bool:
        return self.servers[port].pid is not None


@contextmanager
def running_cluster(
    directory: Path, *, primaries: int = 3, replicas: int = 3, config: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A cluster; ``config``: additional configuration of every node."""
    with ExitStack() as stack:
        numbers = free_ports(2 * (primaries + replicas))
        buses = dict(zip(numbers[::2], numbers[1::2], strict=True))
        cluster = Cluster({}, stack)
        for port, bus in buses.items():
            overrides = _node_config(port, bus) | dict(config or {})
            cluster.servers[port] = stack.enter_context(
                EmbeddedServer(directory / str(port), config_overrides=overrides)
            )
        _join(cluster, buses, primaries)
        yield cluster


def free_ports(count: int) -> list[int]:
    """Different ports that are not in use.

    They are below the ephemeral ports, so that no connection gets one before the test uses it, and random,
    so that tests in several processes, which share their seed, get different ones.
    """
    found: set[int] = set()
    while len(found) < count:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.add(port)
    return list(found)


def until(condition: Callable[[], bool], failure: str) -> None:
    """Poll a condition on other processes; fails with ``failure`` after the timeout."""
    deadline_s = time.monotonic() + HANG_LIMIT_S
    while not condition():
        assert time.monotonic() < deadline_s, failure
        time.sleep(0.02)


def _node_config(port: int, bus: int) -> dict[str, str]:
    return {
        "port": str(port),
        "bind": "127.0.0.1",
        "cluster-enabled": "yes",
        "cluster-port": str(bus),
        "cluster-node-timeout": str(NODE_TIMEOUT_MS),
        "cluster-require-full-coverage": "no",
        "repl-diskless-sync-delay": "0",  # the default waits five seconds for further replicas
    }


def _join(cluster: Cluster, buses: Mapping[int, int], primaries: int) -> None:
    ports = list(buses)
    step = 16384 // primaries + 1
    for i, port in enumerate(ports[:primaries]):
        _execute(port, "CLUSTER ADDSLOTSRANGE", i * step, min(16383, (i + 1) * step - 1))
    for i, port in enumerate(ports):
        _execute(port, "CLUSTER SET-CONFIG-EPOCH", i + 1)
        if i:
            _execute(ports[0], "CLUSTER MEET", "127.0.0.1", port, buses[port])
    until(lambda: all(_is_whole(port, len(ports)) for port in ports), "the nodes did not meet")
    for i, port in enumerate(ports[primaries:]):
        _execute(port, "CLUSTER REPLICATE", _execute(ports[i % primaries], "CLUSTER MYID"))
    until(lambda: cluster.is_whole() and len(cluster.primaries()) == primaries, "the replicas do not follow")


def _execute(port: int, *command: object) -> Any:
    with redis.Redis(port=port) as client:
        return client.execute_command(*command)


def _info(port: int) -> dict[str, object]:
    with redis.Redis(port=port) as client:
        return dict(client.info())


def _is_whole(port: int, size: int) -> bool:
    with redis.Redis(port=port) as client:
        try:
            state = client.execute_command("CLUSTER INFO")
            replication = client.info("replication")
            nodes = client.execute_command("CLUSTER NODES")
        except redis.RedisError:  # loading
            return False
    text = state if isinstance(state, dict) else dict(line.split(":") for line in state.decode().split())
    flags = [str(node["flags"]) for node in nodes.values()]
    return (
        text["cluster_state"] == "ok"
        and int(text["cluster_known_nodes"]) == size
        and not any("fail" in flag or "handshake" in flag for flag in flags)
        and replication.get("master_link_status", "up") == "up"
    )
