"""A cluster on loopback: primaries with a replica each, for tests and benchmarks that kill them.

Roles move when a primary dies, so whoever needs one asks for it. ``heal`` brings back what was killed.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot

from aggregator.store.embedded import EmbeddedServer

PATIENCE_S = 30.0
NODE_TIMEOUT_MS = 2000


class Cluster:
    """Nodes by port. Made by ``running_cluster``."""

    def __init__(self, servers: dict[int, EmbeddedServer]) -> None:
        self.servers = servers

    @property
    def url(self) -> str:
        """Where a client starts to look: any node will do."""
        return f"redis+cluster://127.0.0.1:{next(iter(self.servers))}"

    def primaries(self) -> list[int]:
        """Ports of the living primaries, as they see themselves."""
        return [port for port in self.servers if self._is_alive(port) and _info(port)["role"] == "master"]

    def primary_of(self, key: bytes) -> int:
        """Port of the primary that has ``key`` now."""
        slot = key_slot(key)
        with redis.Redis(port=self.primaries()[0]) as client:
            for start, end, primary, *_ in client.execute_command("CLUSTER SLOTS"):
                if start <= slot <= end:
                    return int(primary[1])
        raise LookupError(slot)

    def empty(self) -> None:
        """Forget everything."""
        for port in self.primaries():
            with redis.Redis(port=port) as client:
                client.flushall()

    def cut_replication(self, port: int) -> None:
        """From now on this primary sends nothing to its replicas; it forgets so when it starts again."""
        _tell(port, "ACL SETUSER", "default", "-psync", "-sync")
        _tell(port, "CLIENT KILL", "TYPE", "replica")

    def kill(self, port: int) -> None:
        """SIGKILL, in the midst of whatever it does."""
        server = self.servers[port]
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: server.pid is None, "the node did not die")

    def heal(self) -> None:
        """Start what was killed; returns when all nodes agree and every replica follows its primary."""
        for server in self.servers.values():
            server.restart_if_dead()
        until(self.is_whole, "the cluster did not come together")

    def is_whole(self) -> bool:
        """Everyone answers and knows everyone, all slots are served, all replicas are in step."""
        return all(self._is_alive(port) and _is_whole(port, len(self.servers)) for port in self.servers)

    def _is_alive(self, port: int) -> bool:
        return self.servers[port].pid is not None


@contextmanager
def running_cluster(
    directory: Path, *, primaries: int = 3, replicas: int = 3, config: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A whole cluster; ``config`` adds lines to the configuration of every node."""
    with ExitStack() as stack:
        numbers = free_ports(2 * (primaries + replicas))
        buses = dict(zip(numbers[::2], numbers[1::2], strict=True))
        cluster = Cluster({})
        for port, bus in buses.items():
            lines = _lines(port, bus) | dict(config or {})
            cluster.servers[port] = stack.enter_context(
                EmbeddedServer(directory / str(port), config_overrides=lines)
            )
        _join(cluster, buses, primaries)
        yield cluster


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses just now, all different."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            found.append(probe.getsockname()[1])
        return found


def until(holds: Callable[[], bool], otherwise: str) -> None:
    """Ask until it holds: other processes change, no event tells."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s, otherwise
        time.sleep(0.02)


def _lines(port: int, bus: int) -> dict[str, str]:
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
        _tell(port, "CLUSTER ADDSLOTSRANGE", i * step, min(16383, (i + 1) * step - 1))
    for i, port in enumerate(ports):
        _tell(port, "CLUSTER SET-CONFIG-EPOCH", i + 1)
        if i:
            _tell(ports[0], "CLUSTER MEET", "127.0.0.1", port, buses[port])
    until(lambda: all(_is_whole(port, len(ports)) for port in ports), "the nodes did not meet")
    for i, port in enumerate(ports[primaries:]):
        _tell(port, "CLUSTER REPLICATE", _tell(ports[i % primaries], "CLUSTER MYID"))
    until(lambda: cluster.is_whole() and len(cluster.primaries()) == primaries, "the replicas do not follow")


def _tell(port: int, *command: object) -> Any:
    with redis.Redis(port=port) as client:
        return client.execute_command(*command)  # type: ignore[arg-type]


def _info(port: int) -> dict[str, object]:
    with redis.Redis(port=port) as client:
        return dict(client.info())


def _is_whole(port: int, size: int) -> bool:
    with redis.Redis(port=port) as client:
        try:
            state = client.execute_command("CLUSTER INFO")
            replication = client.info("replication")
            nodes = client.execute_command("CLUSTER NODES")
        except redis.RedisError:  # loading its data
            return False
    text = state if isinstance(state, dict) else dict(line.split(":") for line in state.decode().split())
    flags = [str(node["flags"]) for node in nodes.values()]
    return (
        text["cluster_state"] == "ok"
        and int(text["cluster_known_nodes"]) == size
        and not any("fail" in flag or "handshake" in flag for flag in flags)
        and replication.get("master_link_status", "up") == "up"
    )
