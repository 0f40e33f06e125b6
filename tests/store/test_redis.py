"""Redis store with a server that is stopped, stalled, full, read-only, loading or not a Redis server."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from redis import exceptions as driver

from aggregator.cli.doctor import acl_command
from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.base import Delete, Put, StreamAdd, Transaction, ValueEquals
from aggregator.store.client import open_client
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.periodic_task import Lease
from aggregator.store.redis import RedisStore
from tests.support.cluster import Cluster, free_ports, running_cluster, until
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.store_steps import append, length_equals, scan
from tests.support.stores import direct_client, open_patient_store

GROW = Transaction((length_equals(b"{t}a", 0),), (append(b"{t}a", b"x"),))


async def release_lease(store: RedisStore) -> None:
    """Release a lease as its holder."""
    lease = Lease(store, b"l", 1000)
    lease.is_held = True
    await lease.release()


CALLS: dict[str, Callable[[RedisStore], Awaitable[Any]]] = {
    "read": lambda store: store.read([b"a"]),
    "commit": lambda store: store.commit(GROW),
    "commit_many": lambda store: store.commit_many([GROW, GROW]),
    "put": lambda store: store.put([Put(b"a", b"")]),
    "delete": lambda store: store.delete([b"a"]),
    "stream_read": lambda store: store.stream_read([b"s", b"t"], [b"", b""], 1),
    "stream_tail": lambda store: store.stream_tail(b"s", 1),
    "stream_trim": lambda store: store.stream_trim(b"s", b"1-0"),
    "acquire": lambda store: Lease(store, b"l", 1000).acquire(),
    "release": release_lease,
    "scan": lambda store: scan(store, b""),
    "scan_batches": lambda store: anext(store.scan_batches(b"")),
}
WRITES = ("commit", "commit_many", "put", "delete", "stream_trim", "acquire", "release")


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[RedisStore]:
    """A store that is closed at the end."""
    store = open_patient_store(url, **options)
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def admin_client(server: EmbeddedServer) -> Iterator[redis.Redis]:
    """A plain client to reconfigure a server."""
    with direct_client(server.url) as client:
        yield client


async def assert_fails(call: Awaitable[Any], message: str, cause: type[Exception]) -> None:
    """The call raises StoreUnavailable: one sentence, caused by the error of redis-py."""
    with pytest.raises(StoreUnavailable, match=message) as caught:
        await call
    assert isinstance(caught.value.__cause__, cause)
    assert "\n" not in str(caught.value)


async def until_ready(store: RedisStore) -> None:
    """Poll until the server has loaded its data."""
    async with asyncio.timeout(HANG_LIMIT_S):
        while not (await store.info()).ready:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_every_call_fails_while_the_server_is_stopped_and_works_again_after_it(
    own_server: EmbeddedServer,
) -> None:
    """Server stopped: every method raises StoreUnavailable. Server restarted: the same store object works."""
    async with opened(own_server.url) as store:
        await store.put([Put(b"kept", b"x")])
        own_server.stop()
        for call in CALLS.values():
            await assert_fails(call(store), "cannot be reached", driver.ConnectionError)
        await assert_fails(store.check(), "cannot be reached", driver.ConnectionError)
        info = await store.info()
        assert not info.ready and info.problem is not None and "cannot be reached" in info.problem

        own_server.start()

        assert await store.read([b"kept"]) == [b"x"]
        assert (await store.info()).ready
        for call in CALLS.values():
            await call(store)


@pytest.mark.parametrize("name", CALLS)
async def test_a_connection_broken_by_a_kill_is_replaced(own_server: EmbeddedServer, name: str) -> None:
    """SIGKILL and restart between two calls: no call fails because of the dead connection."""
    async with opened(own_server.url) as store:
        await store.read([b"a"])
        assert own_server.pid is not None
        os.kill(own_server.pid, signal.SIGKILL)
        while not own_server.restart_if_dead():  # noqa: ASYNC110  waits for the death of another process
            await asyncio.sleep(0)
        await until_ready(store)

        await CALLS[name](store)


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_to_a_stalled_server_times_out_once(own_server: EmbeddedServer, name: str) -> None:
    """SIGSTOP: the call ends at its timeout, is not retried, and the store works after SIGCONT."""
    async with opened(own_server.url) as patient, opened(own_server.url, socket_timeout_s=0.1) as store:
        await patient.commit(Transaction((), (Put(b"{t}x", b""),)))
        await until_ready(store)
        assert own_server.pid is not None
        os.kill(own_server.pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(HANG_LIMIT_S):
                await assert_fails(CALLS[name](store), "did not answer in time", driver.TimeoutError)
        finally:
            os.kill(own_server.pid, signal.SIGCONT)

        await until_ready(store)
        assert await patient.read([b"{t}x"]) == [b""]


async def test_a_full_server_rejects_a_whole_commit(own_server: EmbeddedServer) -> None:
    """Out of memory: not even the Delete before the Append is applied; reads still work."""
    async with opened(own_server.url) as store:
        await store.put([Put(b"{t}old", b"x")])
        with admin_client(own_server) as client:
            client.config_set("maxmemory", 1)
            moved = Transaction((), (Delete(b"{t}old"), append(b"{t}new", b"x"), StreamAdd(b"{t}s", b"")))
            await assert_fails(store.commit(moved), "is full", driver.OutOfMemoryError)
            await assert_fails(store.commit_many([moved, moved]), "is full", driver.OutOfMemoryError)
            await assert_fails(store.put([Put(b"b", b"")]), "is full", driver.OutOfMemoryError)

            assert await store.read([b"{t}old", b"{t}new"]) == [b"x", None]
            info = await store.info()
            assert not info.ready and info.problem is not None and "is full" in info.problem
            await store.check()  # reads, such as those of a backup, continue

            client.config_set("maxmemory", 0)
            assert await store.commit(moved) == ()
            assert (await store.info()).ready


async def test_a_server_without_its_required_replicas_is_not_ready(own_server: EmbeddedServer) -> None:
    """With ``min-replicas-to-write`` it rejects writes but serves reads, until the replicas are back."""
    async with opened(own_server.url) as store:
        with admin_client(own_server) as client:
            client.config_set("min-replicas-to-write", 1)
            await assert_fails(store.put([Put(b"a", b"x")]), "without its replicas", driver.ResponseError)
            info = await store.info()
            assert info.problem is not None and "has 0 connected replicas" in info.problem
            assert await store.read([b"a"]) == [None]

            client.config_set("min-replicas-to-write", 0)
            await store.put([Put(b"a", b"x")])
            assert (await store.info()).ready


async def test_a_server_that_cannot_write_its_snapshots_is_not_ready(own_server: EmbeddedServer) -> None:
    """By default Redis rejects writes then (``stop-writes-on-bgsave-error``)."""
    (own_server.data_dir / "dump.rdb" / "in-the-way").mkdir(parents=True)
    async with opened(own_server.url) as store:
        with admin_client(own_server) as client:
            client.config_set("save", "3600 1")
            client.bgsave()
            async with asyncio.timeout(HANG_LIMIT_S):
                while client.info("persistence")["rdb_bgsave_in_progress"]:  # noqa: ASYNC110  no event to wait for
                    await asyncio.sleep(0.01)
            await assert_fails(store.put([Put(b"a", b"x")]), "cannot write to its disk", driver.ResponseError)
            info = await store.info()
            assert info.problem is not None and "free space on its disk" in info.problem

            client.config_set("save", "")
            await store.put([Put(b"a", b"x")])
            assert (await store.info()).ready


async def test_a_server_that_became_a_replica_is_rejected(own_server: EmbeddedServer) -> None:
    """Its writes and reads fail, it is not ready, and ``check`` raises ConfigurationError."""
    async with opened(own_server.url) as store:
        await store.put([Put(b"a", b"x")])
        with admin_client(own_server) as client:
            client.replicaof("127.0.0.1", 1)
            for name in WRITES:
                await assert_fails(CALLS[name](store), "read-only", driver.ReadOnlyError)
            for name in ("read", "stream_read", "stream_tail"):
                await assert_fails(CALLS[name](store), "read-only", driver.ReadOnlyError)
            assert not (await store.info()).ready
            with pytest.raises(ConfigurationError, match="read-only replica; point store_url to the primary"):
                await store.check()

            client.replicaof("NO", "ONE")
            await store.check()
            assert await store.read([b"a"]) == [b"x"]
            for name in WRITES:
                await CALLS[name](store)


@pytest.mark.integration
async def test_a_loading_server_is_not_ready_yet(tmp_path: Path) -> None:
    """While the data loads, calls raise StoreUnavailable, and neither info nor check is ready."""
    with EmbeddedServer(tmp_path) as server, admin_client(server) as client:
        client.mset({f"key{i}": "x" * 100 for i in range(3000)})
        client.bgrewriteaof()
        while (  # noqa: ASYNC110
            client.info("persistence")["aof_rewrite_in_progress"] or not client.info()["aof_base_size"]
        ):
            await asyncio.sleep(0.005)
    slow = {"key-load-delay": "1000", "loading-process-events-interval-bytes": "1024"}
    server = EmbeddedServer(tmp_path, config_overrides=slow)
    server.start(wait_until_loaded=False)
    try:
        async with opened(server.url) as store:
            await assert_fails(store.read([b"a"]), "still loading", driver.BusyLoadingError)
            await assert_fails(store.commit(GROW), "still loading", driver.BusyLoadingError)
            await assert_fails(store.commit_many([GROW, GROW]), "still loading", driver.BusyLoadingError)
            info = await store.info()
            assert not info.ready and info.problem is not None and "still loading" in info.problem
            await assert_fails(store.check(), "still loading", driver.BusyLoadingError)
            with admin_client(server) as client:
                client.config_set("key-load-delay", 0)
            await until_ready(store)

            assert await store.read([b"key2999"]) == [b"x" * 100]
            assert await store.commit(GROW) == ()
    finally:
        server.stop()


async def test_a_flushed_script_is_loaded_again(valkey_url: str) -> None:
    """After SCRIPT FLUSH commits work, single ones and batches, in order."""
    async with opened(valkey_url) as store:
        with direct_client(valkey_url) as client:
            client.script_flush()
            assert await store.commit(GROW) == ()
            client.script_flush()
            more = [Transaction((length_equals(b"{t}a", i),), (append(b"{t}a", b"x"),)) for i in range(1, 5)]
            assert await store.commit_many(more) == [()] * 4


async def test_the_source_of_the_script_is_sent_once(valkey_url: str) -> None:
    """Single commits and lists send its hash."""
    async with opened(valkey_url) as store:
        with direct_client(valkey_url) as client:
            client.script_flush()
            for i in range(3):
                grow = Transaction((length_equals(b"{t}a", 2 * i),), (append(b"{t}a", b"x"),))
                after = Transaction((length_equals(b"{t}a", 2 * i + 1),), (append(b"{t}a", b"x"),))
                client.config_resetstat()
                assert await store.commit_many([grow, after]) == [(), ()]
                calls = client.info("commandstats")
                assert ("cmdstat_eval" in calls) == (i == 0)
                assert calls["cmdstat_evalsha"]["calls"] == 2


async def test_a_commit_whose_reply_is_lost_is_not_retried(valkey_url: str) -> None:
    """The write was applied, the connection broke: the call raises, and the write is applied once."""
    unchecked = Transaction((), (append(b"{t}a", b"x"),))
    async with proxied(valkey_url) as (url, proxy), opened(url) as store:
        await store.commit(unchecked)
        proxy.drop_next_reply = True
        await assert_fails(store.commit(unchecked), "cannot be reached or dropped", driver.ConnectionError)
        await store.read([b"{t}a"])  # so that the next reply is not the handshake of a new connection
        proxy.drop_next_reply = True
        await assert_fails(
            store.commit_many([unchecked] * 2), "cannot be reached or dropped", driver.ConnectionError
        )

        assert await store.read([b"{t}a"]) == [b"xxxx"]


async def test_a_read_is_retried_once_on_a_broken_connection(valkey_url: str) -> None:
    """A connection that breaks during a read does not make it fail."""
    async with proxied(valkey_url) as (url, proxy), opened(url) as store:
        await store.put([Put(b"a", b"x")])
        proxy.drop_next_reply = True

        assert await store.read([b"a"]) == [b"x"]


async def test_cancelled_calls_never_mix_up_replies(valkey_url: str) -> None:
    """Half of 400 calls are cancelled at random; the rest get their own replies, and no connection leaks."""
    generator = random.Random(7)
    limits = {"max_connections": 8, "socket_timeout_s": HANG_LIMIT_S, "connect_timeout_s": HANG_LIMIT_S}
    async with proxied(valkey_url) as (url, proxy), opened(url, **limits) as store:
        proxy.delay_s = 0.001
        await store.put([Put(b"{t}%d" % i, b"%d" % i) for i in range(400)])

        async def call(i: int) -> None:
            key, value = b"{t}%d" % i, b"%d" % i
            if i % 3:
                assert await store.read([key]) == [value]
            else:
                check = Transaction((ValueEquals(key, value), ValueEquals(key, b"no")), ())
                assert await store.commit(check) == (1,)

        tasks = [asyncio.create_task(call(i)) for i in range(400)]
        while not all(task.done() for task in tasks):
            generator.choice(tasks[::2]).cancel()
            await asyncio.sleep(0)
        results = await asyncio.gather(*tasks, return_exceptions=True)

        assert {type(result) for result in results} <= {type(None), asyncio.CancelledError}
        assert all(result is None for result in results[1::2])
        assert any(isinstance(result, asyncio.CancelledError) for result in results)
        pool = store._client._pool
        assert pool is not None and not any(each.in_flight for each in pool._connections)
        assert await store.read([b"{t}1", b"{t}399"]) == [b"1", b"399"]


async def test_many_callers_share_few_connections(valkey_url: str) -> None:
    """300 concurrent callers: each gets its own reply, over no more than ``max_connections`` connections."""
    async with opened(valkey_url, max_connections=2) as store:
        with direct_client(valkey_url) as client:
            connections_before = len(client.client_list())
            await store.put([Put(b"%d" % i, b"%d" % i) for i in range(300)])
            found = await asyncio.gather(*(store.read([b"%d" % i]) for i in range(300)))

            assert found == [[b"%d" % i] for i in range(300)]
            assert len(client.client_list()) - connections_before == 2


@pytest.mark.services
async def test_callers_wait_for_a_free_cluster_connection(cluster_url: str) -> None:
    """The cluster client of redis-py would raise immediately; the store waits."""
    async with opened(cluster_url, max_connections=2) as store:
        await store.put([Put(b"a", b"x")])
        reads = [store.read([b"a", b"{%d}" % i]) for i in range(200)]

        assert await asyncio.gather(*reads) == [[b"x", None]] * 200


@pytest.mark.services
@pytest.mark.parametrize("victim", [0, 2])
async def test_a_cluster_without_one_node_serves_the_rest_and_recovers(cluster: Cluster, victim: int) -> None:
    """One of three primaries is killed: only its keys are unavailable, until it is back."""
    port = cluster.primaries()[victim]
    keys = [b"{%d}k" % i for i in range(24)]
    async with opened(cluster.url) as store:
        await store.put([Put(key, key) for key in keys])
        cluster.set_failover(False)  # on a slow machine the replica would serve these keys meanwhile
        cluster.kill(port)
        try:
            grown = [Transaction((), (append(key, b"+"),)) for key in keys]
            for call in (lambda: store.read(keys), lambda: store.commit_many(grown)):
                with pytest.raises(StoreUnavailable):
                    await call()
            served = await asyncio.gather(*(store.read([key]) for key in keys), return_exceptions=True)
            assert {type(answer) for answer in served} == {list, StoreUnavailable}
        finally:
            cluster.set_failover(True)
            cluster.heal()
        await until_ready(store)

        assert await store.put([Put(key, key) for key in keys]) == [True] * 24
        assert await store.read(keys) == keys


@pytest.mark.services
async def test_each_primary_of_a_cluster_counts_its_own_replicas(tmp_path: Path) -> None:
    """One has two replicas and one has one: each commit waits for all that its own primary has."""
    with running_cluster(tmp_path, primaries=2, replicas=3) as uneven:
        grown = [Transaction((), (append(b"{%d}k" % i, b"+"),)) for i in range(4)]
        async with opened(f"{uneven.url}?replicated=all") as store:
            assert [await store.commit(each) for each in grown] == [()] * 4
            assert await store.commit_many(grown) == [()] * 4


@pytest.mark.services
async def test_a_plain_url_to_a_cluster_is_rejected(cluster: Cluster) -> None:
    """The error names the scheme to use."""
    async with opened(f"redis://127.0.0.1:{cluster.primaries()[0]}") as store:
        with pytest.raises(ConfigurationError, match=r"write redis\+cluster:// instead"):
            await store.check()


@pytest.mark.integration
async def test_a_cluster_url_to_a_plain_server_is_rejected(tmp_path: Path, free_port: int) -> None:
    """The error names the scheme to use."""
    port = free_port
    with EmbeddedServer(tmp_path, config_overrides={"port": str(port)}):
        async with opened(f"redis+cluster://127.0.0.1:{port}") as store:
            with pytest.raises(ConfigurationError, match=r"write redis:// instead"):
                await store.check()


@pytest.mark.services
async def test_an_absent_cluster_is_unavailable() -> None:
    """Nothing listens at the address: every call raises StoreUnavailable."""
    async with opened("redis+cluster://127.0.0.1:1") as store:
        for call in CALLS.values():
            with pytest.raises(StoreUnavailable):
                await call(store)
        assert not (await store.info()).ready


async def test_a_wrong_password_is_a_configuration_error(own_server: EmbeddedServer) -> None:
    """``check`` raises ConfigurationError, calls raise StoreUnavailable; no message contains the password."""
    with admin_client(own_server) as client:
        client.config_set("requirepass", "right")
        for secret in ("wrong-secret", ""):
            url = own_server.url + (f"?password={secret}" if secret else "")
            async with opened(url) as store:
                with pytest.raises(ConfigurationError, match="rejects this user name or password") as caught:
                    await store.check()
                await assert_fails(store.read([b"a"]), "rejects this user", driver.RedisError)
                assert "wrong-secret" not in str(caught.value)
        async with opened(own_server.url + "?password=right") as store:
            await store.check()


async def test_a_user_may_lack_config_but_not_scripting(own_server: EmbeddedServer) -> None:
    """Managed servers forbid CONFIG, which is fine; EVAL is required."""
    with admin_client(own_server) as client:
        client.acl_setuser(
            "plain", enabled=True, passwords=["+pw"], keys=["*"], categories=["+@all"], commands=["-config"]
        )
        client.acl_setuser(
            "mute", enabled=True, passwords=["+pw"], keys=["*"], categories=["+@all", "-@scripting"]
        )
    async with opened(own_server.url + "?username=plain&password=pw") as store:
        await store.check()
        assert "not known" in (await store.info()).durability
    async with opened(own_server.url + "?username=mute&password=pw") as store:
        with pytest.raises(ConfigurationError, match=r"EVAL|permissions"):
            await store.check()


async def test_a_server_that_evicts_keys_is_rejected(own_server: EmbeddedServer) -> None:
    """Any maxmemory-policy but noeviction loses articles silently."""
    with admin_client(own_server) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    async with opened(own_server.url) as store:
        with pytest.raises(ConfigurationError, match="CONFIG SET maxmemory-policy noeviction"):
            await store.check()


@pytest.mark.parametrize(
    "url",
    ["", "localhost", "http://x", "redis://host:port/", "redis://h/0?socket_timeout=x", "mysql+cluster://x"],
)
def test_an_invalid_url_is_one_sentence(url: str) -> None:
    """The error shows valid forms, and not the URL, which may contain a password."""
    with pytest.raises(ConfigurationError, match="expected redis://host:port/0"):
        open_patient_store(url)


@pytest.mark.integration
async def test_another_kind_of_server_is_unavailable() -> None:
    """A mail server listens on the port: no call hangs or raises other errors."""

    async def send_greeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail ready\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(send_greeting, "127.0.0.1", 0)
    async with server, opened(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}") as store:
        for call in CALLS.values():
            with pytest.raises(StoreUnavailable):
                await call(store)


async def test_a_connection_that_ends_while_it_is_opened_is_unavailable(
    valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A known RuntimeError of uvloop is translated; any other RuntimeError is passed on as a bug."""

    async def connect(connection: object) -> None:
        raise RuntimeError(message)

    async with opened(valkey_url) as store:
        with monkeypatch.context() as patched:
            patched.setattr("redis.asyncio.connection.AbstractConnection.connect", connect)
            message = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"
            for call in (scan(store, b"a"), store.read([b"a"])):
                await assert_fails(call, "cannot be reached or dropped", RuntimeError)
            assert not (await store.info()).ready
            message = "dictionary changed size during iteration"
            with pytest.raises(RuntimeError, match=message):
                await scan(store, b"a")

        assert (await store.info()).ready


async def test_a_rejected_command_quotes_the_reply_of_the_server(valkey_url: str) -> None:
    """A key of the wrong type changes nothing; the message contains the server's error."""
    async with opened(valkey_url) as store:
        await store.commit(Transaction((), (StreamAdd(b"{t}s", b""),)))
        wrong = Transaction((length_equals(b"{t}s", 0),), (append(b"{t}s", b"x"),))

        await assert_fails(store.commit(wrong), "rejected a command: .*WRONGTYPE", driver.ResponseError)


class Proxy:
    """A TCP proxy in front of a server that can delay or drop replies."""

    delay_s = 0.0
    drop_next_reply = False  # drop the next reply and close its connection

    def __init__(self, path: str) -> None:
        self._path = path
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: forward requests immediately, replies late or never."""
        upstream, downstream = await asyncio.open_unix_connection(self._path)
        forward = asyncio.create_task(self._copy(reader, downstream))
        try:
            while data := await upstream.read(65536):
                if self.drop_next_reply:
                    self.drop_next_reply = False
                    break
                await asyncio.sleep(self.delay_s)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            forward.cancel()
            downstream.close()
            writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[tuple[str, Proxy]]:
    """URL of the server behind a proxy, and the proxy."""
    proxy = Proxy(url.removeprefix("unix://"))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    async with server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", proxy


async def test_installations_with_prefixes_share_a_server(own_server: EmbeddedServer) -> None:
    """Neither sees or scans the keys of the other, also as the user that ``doctor --acl`` describes."""
    with admin_client(own_server) as client:
        client.execute_command(  # type: ignore[no-untyped-call]
            *acl_command("redis://h/0?prefix=one:").replace("PASSWORD", "pw").split()
        )
        path = own_server.url.removeprefix("unix://")
        async with (
            opened(f"unix://aggregator:pw@{path}?prefix=one:") as one,
            opened(f"{own_server.url}?prefix=two:") as two,
        ):
            await one.check()
            for store, value in ((one, b"1"), (two, b"2")):
                await store.put([Put(b"{k}a", value)])
                await store.commit(Transaction((), (StreamAdd(b"{k}s", value),)))
            assert await one.read([b"{k}a"]) == [b"1"] and await two.read([b"{k}a"]) == [b"2"]
            assert await scan(one, b"{k}") == [b"{k}a", b"{k}s"]
            assert [entry[1] for (entry,) in await two.stream_read([b"{k}s"], [b""], 9)] == [b"2"]
            await one.delete([b"{k}a"])
            assert await two.read([b"{k}a"]) == [b"2"]
            assert all(key.startswith((b"one:", b"two:")) for key in client.scan_iter())


async def test_replicated_acknowledges_what_replicas_have(own_server: EmbeddedServer, tmp_path: Path) -> None:
    """Without a connected replica nothing is acknowledged; a repetition is confirmed as well."""
    (port,) = free_ports(1)
    with EmbeddedServer(tmp_path / "replica") as replica, admin_client(own_server) as client:
        client.config_set("bind", "127.0.0.1")
        client.config_set("port", port)
        async with opened(f"{own_server.url}?replicated=all") as store:
            await store.read([b"a"])
            with pytest.raises(StoreUnavailable, match="Of 1 replicas that must confirm"):
                await store.commit(GROW)
            with direct_client(replica.url) as at_replica:
                at_replica.replicaof("127.0.0.1", port)
                until(lambda: client.info().get("slave0", {}).get("state") == "online", "no replica")
                await store.read([b"a"])
                assert await store.commit(GROW) == ()
                assert at_replica.get("{t}a") == b"x"
                await store.commit_many([])
                assert at_replica.exists("{aggregator}replicated")
                assert await store.commit(Transaction((), (Put(b"{t}b", b"y"),))) == ()
                assert at_replica.get("{t}b") == b"y"


@pytest.mark.parametrize("password", ["p@ss/w#rd", "p@ss/word", ":#@", "@/@"])
def test_a_password_that_is_not_escaped_is_no_host_name(password: str) -> None:
    """A piece of it would be looked up, and shown, as the name of the store."""
    with pytest.raises(ConfigurationError, match="@ as %40") as caught:
        open_client(f"redis://doc:{password}@store.example:6379/0")
    assert "ss" not in str(caught.value).replace("password", "")
    open_client("redis://doc:p%40ss%2Fw%23rd@store.example:6379/0")


def test_a_connection_reads_no_metadata_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process opens one per second, to see where the address leads; reading them takes 1 ms."""
    client = open_client("redis://store.example:6379/0")
    monkeypatch.setattr("redis.utils.get_lib_version", lambda: pytest.fail("the metadata were read"))

    client._driver_client.connection_pool.make_connection()


async def test_a_name_that_cannot_be_resolved_is_a_matter_of_dns() -> None:
    """Waited for: it may be back soon."""
    store = open_client("redis://no-such-store.invalid:6379", connect_timeout_s=2.0)
    with pytest.raises(StoreUnavailable, match="cannot be resolved; check DNS"):
        await RedisStore(store).read([b"k"])
