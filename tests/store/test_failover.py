"""An address that leads to a promoted replica: the former server is left, whatever it still does."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import redis

from aggregator.errors import StoreUnavailable
from aggregator.store.base import Put
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import RedisStore
from tests.support.cluster import free_ports, until
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.stores import direct_client, open_patient_store


@dataclass
class Address:
    """A port that forwards new connections to ``target``; those that are open stay where they are."""

    target: int
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    ends: list[asyncio.StreamWriter] = field(default_factory=list)

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        self.ends += [back, writer]
        for source, sink in ((reader, back), (there, writer)):
            self.tasks.add(asyncio.create_task(_copy(source, sink)))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    sink.close()


@dataclass
class Pair:
    """A store behind an address, and direct clients of the two servers; the second one is a replica."""

    store: RedisStore
    address: Address
    old: redis.Redis
    new: redis.Redis
    ports: list[int]
    old_pid: int

    def promote(self) -> None:
        """The replica takes over, and new connections lead to it."""
        self.new.replicaof("NO", "ONE")
        self.address.target = self.ports[1]


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    """In step, with ``b"a"`` stored."""
    ports = free_ports(2)
    config = [{"port": str(port), "bind": "127.0.0.1", "repl-diskless-sync-delay": "0"} for port in ports]
    address = Address(ports[0])
    with (
        EmbeddedServer(tmp_path / "old", config_overrides=config[0]) as first,
        EmbeddedServer(tmp_path / "new", config_overrides=config[1]) as second,
        direct_client(first.url) as old,
        direct_client(second.url) as new,
    ):
        new.replicaof("127.0.0.1", ports[0])
        until(lambda: new.info()["master_link_status"] == "up", "the replica does not follow")
        front = await asyncio.start_server(address.forward, "127.0.0.1", 0)
        store = open_patient_store(f"redis://127.0.0.1:{front.sockets[0].getsockname()[1]}")
        await store.put([Put(b"a", b"1")])
        assert await store.read([b"a"]) == [b"1"]
        old.wait(1, 0)
        assert first.pid is not None
        yield Pair(store, address, old, new, ports, first.pid)
        os.kill(first.pid, signal.SIGCONT)
        await store.close()
        front.close()
        for task in address.tasks:
            task.cancel()
        for end in address.ends:
            end.transport.abort()
        await asyncio.sleep(0)


async def test_a_server_that_became_a_replica_is_left_at_once(pair: Pair) -> None:
    """One write is refused, the next one is stored by the promoted server."""
    pair.promote()
    pair.old.replicaof("127.0.0.1", pair.ports[1])
    with pytest.raises(StoreUnavailable, match="read-only"):
        await pair.store.put([Put(b"b", b"2")])
    await pair.store.put([Put(b"b", b"2")])
    assert pair.new.get("b") == b"2"
    assert await pair.store.read([b"a"]) == [b"1"]
    assert pair.store.is_promoted


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_server_that_new_connections_do_not_reach_is_left(pair: Pair, hangs: bool) -> None:
    """Although it would go on taking writes, or does not answer: what waits for it fails now."""
    pair.promote()
    waiting: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    if hangs:
        os.kill(pair.old_pid, signal.SIGSTOP)
        waiting = asyncio.ensure_future(pair.store.put([Put(b"c", b"3")]))
        await asyncio.sleep(0)
    async with asyncio.timeout(HANG_LIMIT_S / 2):
        await pair.store.leave_moved_server()
        if hangs:
            with pytest.raises(StoreUnavailable):
                await waiting
        await pair.store.put([Put(b"b", b"2")])
    assert pair.new.get("b") == b"2"
    assert await pair.store.read([b"a"]) == [b"1"]
    assert pair.store.is_promoted


async def test_a_connection_that_was_in_use_is_left_too(pair: Pair) -> None:
    """It was lent for a report while the others were closed."""
    pool = pair.store._client._driver_client.connection_pool
    lent = await pool.get_connection()
    pair.promote()
    pair.old.replicaof("127.0.0.1", pair.ports[1])
    with pytest.raises(StoreUnavailable, match="read-only"):
        await pair.store.put([Put(b"b", b"2")])
    await pool.release(lent)
    pair.store._client._reconnected_s = float("-inf")

    assert "replica" in ((await pair.store.info()).problem or "")
    assert not (await pair.store.info()).problem
