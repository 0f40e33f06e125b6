"""Stores for index tests: what holds in one slot of one server must hold over the nodes of a cluster."""

from collections.abc import AsyncIterator

import pytest

from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.stores import open_patient_store

SERVERS = (
    "valkey_url",
    pytest.param("redis_url", marks=pytest.mark.redis),
    pytest.param("cluster_url", marks=pytest.mark.services),
)


@pytest.fixture(params=["memory", *SERVERS])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """An empty store: in memory, Valkey, Redis 7, and a cluster of six nodes."""
    if request.param == "memory":
        yield MemoryStore()
        return
    opened = open_patient_store(request.getfixturevalue(request.param))
    yield opened
    await opened.close()


@pytest.fixture(params=SERVERS)
def server_url(request: pytest.FixtureRequest) -> str:
    """URL of a server that several processes can use."""
    return str(request.getfixturevalue(request.param))
