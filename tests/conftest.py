"""Servers that several test packages share. Each is started once per session, and emptied for each test."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import settings

from aggregator.store.base import Store
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.memory import MemoryStore
from aggregator.store.redis import open_redis_store
from tests.support.cluster import Cluster, free_ports, running_cluster

# A busy machine is no fault of an example; each test has its time limit.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


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
    opened = open_redis_store(request.getfixturevalue("valkey_url"))
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
def cluster_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three primaries and three replicas on loopback; mark the test ``services``."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(cluster_of_session: Cluster) -> Cluster:
    """The whole and empty cluster; what a test kills is brought back for the next."""
    cluster_of_session.heal()
    cluster_of_session.empty()
    return cluster_of_session


@pytest.fixture
def cluster_url(cluster: Cluster) -> str:
    """URL of an empty cluster."""
    return cluster.url


@pytest.fixture
def free_port() -> int:
    """A port that nobody uses just now."""
    return free_ports(1)[0]


def empty(url: str) -> None:
    """Forget everything at ``url``."""
    with redis.Redis.from_url(url) as client:
        client.flushall()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server of this test alone: to be stopped, stalled, filled or killed."""
    server = EmbeddedServer(tmp_path / "own")
    server.start()
    yield server
    server.stop()
