"""Stores and servers for all test packages. Servers start once per session and are emptied for each test."""

from __future__ import annotations

import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from aiohttp import web_app
from hypothesis import settings

from aggregator.store.base import Store
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.memory import MemoryStore
from tests.support.cluster import Cluster, free_ports, running_cluster
from tests.support.stores import direct_client, open_patient_store

# A shell without job control starts background jobs with SIGINT ignored, and processes inherit that: tests
# that interrupt a command would wait forever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline per example: each test has a timeout, and a busy machine must not fail an example.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Let applications be freed: aiohttp caches the handlers of the last 1,024 (handler, application) pairs.

    A process of the product has one application; here each test has its own, with up to 50 MB of models.
    """
    web_app._cached_build_middleware.cache_clear()


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """The embedded Valkey server of the session. Do not stop or reconfigure it."""
    with EmbeddedServer(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def valkey_url(valkey_server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of the emptied Valkey server; what processes remember of it is that of this test."""
    monkeypatch.setenv("AGGREGATOR_DATA_DIR", str(tmp_path / "remembered"))  # of its processes
    monkeypatch.setattr("aggregator.app.MEMORY_NAME", str(tmp_path / "store-memory.json"))  # of this one
    empty(valkey_server.url)
    return valkey_server.url


@pytest.fixture(params=["memory", "valkey"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """An empty store of each kind."""
    if request.param == "memory":
        yield MemoryStore()
        return
    opened = open_patient_store(request.getfixturevalue("valkey_url"))
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """An installed redis-server; mark tests that use it ``redis``."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    with EmbeddedServer(tmp_path_factory.mktemp("redis"), binary=binary) as server:
        yield server


@pytest.fixture
def redis_url(redis_server: EmbeddedServer) -> str:
    """URL of the emptied redis-server; mark tests that use it ``redis``."""
    empty(redis_server.url)
    return redis_server.url


@pytest.fixture(scope="session")
def cluster_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three primaries and three replicas on loopback; mark tests that use it ``services``."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(cluster_of_session: Cluster) -> Cluster:
    """The emptied cluster with all nodes running; killed nodes are restarted."""
    cluster_of_session.heal()
    cluster_of_session.empty()
    return cluster_of_session


@pytest.fixture
def cluster_url(cluster: Cluster) -> str:
    """URL of an empty cluster."""
    return cluster.url


@pytest.fixture
def free_port() -> int:
    """A port that is currently free."""
    return free_ports(1)[0]


def empty(url: str) -> None:
    """Delete all data of the server at ``url``."""
    with direct_client(url) as client:
        client.flushall()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server for one test, which may stop, stall, fill or kill it."""
    server = EmbeddedServer(tmp_path / "own")
    server.start()
    yield server
    server.stop()
