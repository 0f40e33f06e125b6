"""Copying of keys between servers: values, times to live and streams with their positions."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import redis

from aggregator.backup.restore import copy_keys
from aggregator.store.embedded import EmbeddedServer
from tests.support.cluster import Cluster
from tests.support.stores import direct_client

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def source_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server with strings, streams, and a key of another type."""
    with EmbeddedServer(tmp_path_factory.mktemp("source")) as server:
        with direct_client(server.url) as client:
            client.mset({f"{{a}}{number}": os.urandom(number) for number in range(1, 2500)})
            client.set("{a}expiring", "1", px=HOUR_MS)
            for number in range(1, 1203):
                client.xadd("{a}stream", {"p": str(number), "q": b"\xff\x00"}, id=f"{number}-1")
            client.xdel("{a}stream", "1202-1")
            client.xadd("{b}trimmed", {"p": ""}, id="7-7")
            client.xtrim("{b}trimmed", maxlen=0)
            client.hset("{a}hash", "p", "q")
            client.set("other", "1")
        yield server.url


def assert_equal(source: redis.Redis, target: redis.Redis | redis.RedisCluster) -> None:
    """All selected strings and streams are the same, and nothing else was copied."""
    names = [f"{{a}}{number}" for number in range(1, 2500)]
    assert [target.get(name) for name in names] == source.mget(names)
    assert HOUR_MS / 2 < target.pttl("{a}expiring") <= HOUR_MS
    assert target.pttl("{a}1") == -1
    assert target.xrange("{a}stream") == source.xrange("{a}stream")
    for stream, last in (("{a}stream", b"1202-1"), ("{b}trimmed", b"7-7")):
        assert target.xinfo_stream(stream)["last-generated-id"] == last
    assert target.xlen("{b}trimmed") == 0
    assert target.exists("{a}hash") == target.exists("other") == 0


@pytest.mark.parametrize("repeated", [False, True])
async def test_strings_and_streams_are_copied(source_url: str, valkey_url: str, repeated: bool) -> None:
    """Also over what an interrupted run left."""
    if repeated:
        await copy_keys(source_url, valkey_url)
        with direct_client(valkey_url) as target:
            target.set("{a}1", "changed")
            target.xadd("{a}stream", {"p": "changed"})

    assert await copy_keys(source_url, valkey_url) == 2502

    with direct_client(source_url) as source, direct_client(valkey_url) as target:
        assert_equal(source, target)


@pytest.mark.redis
async def test_a_redis_server_is_filled(source_url: str, redis_url: str) -> None:
    """An older one, whose formats of values are others."""
    await copy_keys(source_url, redis_url)

    with direct_client(source_url) as source, direct_client(redis_url) as target:
        assert_equal(source, target)


@pytest.mark.services
async def test_a_cluster_is_filled(source_url: str, cluster: Cluster) -> None:
    """Each key goes to its primary."""
    await copy_keys(source_url, cluster.url)

    with (
        direct_client(source_url) as source,
        redis.RedisCluster.from_url(cluster.url.replace("+cluster", "")) as target,
    ):
        assert_equal(source, target)
