"""Servers that several test packages share. Each is started once per session, and emptied for each test."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from aggregator.store.base import Store
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.memory import MemoryStore
from aggregator.store.redis import open_store


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """The embedded Valkey, for the whole session. Do not stop or reconfigure it."""
    with EmbeddedServer(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def valkey_url(valkey_server: EmbeddedServer) -> str:
    """URL of an empty embedded Valkey."""
    empty(valkey_server.url)
    return valkey_server.url


@pytest.fixture(params=["memory", "valkey"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """Both kinds of store."""
    if request.param == "memory":
        yield MemoryStore()
        return
    opened = open_store(request.getfixturevalue("valkey_url"))
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """An installed redis-server; mark the test ``redis``."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    with EmbeddedServer(tmp_path_factory.mktemp("redis"), binary=binary) as server:
        yield server


@pytest.fixture
def redis_url(redis_server: EmbeddedServer) -> str:
    """URL of an empty installed redis-server; mark the test ``redis``."""
    empty(redis_server.url)
    return redis_server.url


@pytest.fixture(scope="session")
def cluster_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, EmbeddedServer]]:
    """Three primaries by their loopback ports, without replicas; mark the test ``services``.

    Whoever kills one revives it. One that is away takes only its own keys along.
    """
    with ExitStack() as stack:
        numbers = free_ports(6)
        ports, buses = numbers[:3], numbers[3:]
        servers, clients = {}, []
        for port, bus in zip(ports, buses, strict=True):
            directory = tmp_path_factory.mktemp(f"cluster{port}")
            servers[port] = EmbeddedServer(directory, extra=_cluster_lines(port, bus))
            stack.enter_context(servers[port])
            clients.append(stack.enter_context(redis.Redis(port=port)))
        _join(clients, ports, buses)
        yield servers


@pytest.fixture
def cluster_ports(cluster_servers: dict[int, EmbeddedServer]) -> list[int]:
    """Where the primaries of the cluster listen."""
    return list(cluster_servers)


@pytest.fixture
def cluster_url(cluster_ports: list[int]) -> str:
    """URL of an empty cluster."""
    for port in cluster_ports:
        empty(f"redis://127.0.0.1:{port}")
    return f"redis+cluster://127.0.0.1:{cluster_ports[0]}"


@pytest.fixture
def free_port() -> int:
    """A port that nobody uses just now."""
    return free_ports(1)[0]


def empty(url: str) -> None:
    """Forget everything at ``url``."""
    with redis.Redis.from_url(url) as client:
        client.flushall()


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses just now, all different."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            found.append(probe.getsockname()[1])
        return found


def _cluster_lines(port: int, bus: int) -> dict[str, str]:
    return {
        "port": str(port),
        "bind": "127.0.0.1",
        "cluster-require-full-coverage": "no",
        "cluster-enabled": "yes",
        "cluster-port": str(bus),
        "cluster-node-timeout": "2000",
    }


def _join(clients: list[redis.Redis], ports: list[int], buses: list[int]) -> None:
    step = 16384 // len(clients) + 1
    for i, client in enumerate(clients):
        client.execute_command("CLUSTER ADDSLOTSRANGE", i * step, min(16383, (i + 1) * step - 1))
        client.execute_command("CLUSTER SET-CONFIG-EPOCH", i + 1)
    for port, bus in zip(ports[1:], buses[1:], strict=True):
        clients[0].execute_command("CLUSTER MEET", "127.0.0.1", port, bus)
    deadline_s = time.monotonic() + 20
    while not all(_is_whole(client, len(clients)) for client in clients):
        assert time.monotonic() < deadline_s, "the cluster did not come together"
        time.sleep(0.02)


def _is_whole(client: redis.Redis, size: int) -> bool:
    state = client.execute_command("CLUSTER INFO")
    text = state if isinstance(state, dict) else dict(line.split(":") for line in state.decode().split())
    return text["cluster_state"] == "ok" and int(text["cluster_known_nodes"]) == size


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server of this test alone: to be stopped, stalled, filled or killed."""
    server = EmbeddedServer(tmp_path / "own")
    server.start()
    yield server
    server.stop()
