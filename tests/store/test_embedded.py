"""Embedded server: durability after kills, and exclusive use of a data directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.base import Put
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.store.server_process import usable_memory_bytes
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.processes import is_alive
from tests.support.stores import direct_client

pytestmark = pytest.mark.integration

SERVICE = """
import sys, threading
import redis
from aggregator.store.embedded import EmbeddedServer
server = EmbeddedServer(sys.argv[1])
if sys.argv[2] == "thread":  # then the kernel does not end the server with this process
    starter = threading.Thread(target=server.start)
    starter.start()
    starter.join()
else:
    server.start()
print(server.pid, flush=True)
client = redis.Redis.from_url(server.url)
number = 0
while True:
    client.set(f"key{number}", number)
    print(number, flush=True)
    number += 1
"""


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A directory that does not exist yet."""
    return tmp_path / "store"


@pytest.fixture
def service(data_dir: Path) -> Iterator[Callable[[str], tuple[subprocess.Popen[str], int]]]:
    """Starts service processes that write keys and print each acknowledged one."""
    started: list[subprocess.Popen[str]] = []

    def start(mode: str) -> tuple[subprocess.Popen[str], int]:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVICE, str(data_dir), mode], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def client_of(server: EmbeddedServer) -> redis.Redis:
    """A plain client; use it as a context manager."""
    return direct_client(server.url)


def kill_after(process: subprocess.Popen[str], count: int) -> int:
    """Kill the service after ``count`` acknowledged writes; returns the number of all it printed."""
    assert process.stdout is not None
    seen = [int(process.stdout.readline()) for _ in range(count)]
    process.kill()
    seen += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    process.wait()
    return len(seen)


def assert_complete(server: EmbeddedServer, count: int) -> None:
    """All keys below ``count`` are stored."""
    with client_of(server) as client:
        assert client.mget([f"key{i}" for i in range(count)]) == [b"%d" % i for i in range(count)]


def test_data_survives_a_stop(data_dir: Path) -> None:
    """Data written before a stop is available after the next start, at the same URL."""
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        url = server.url
        client.set("a", "b")
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        assert server.url == url
        assert client.get("a") == b"b"


def test_the_directory_is_private(data_dir: Path) -> None:
    """Directory, socket and files are accessible to this user only, and no network port is open."""
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        client.set("a", "b")
        modes = {path.stat().st_mode & 0o077 for path in [data_dir, *data_dir.rglob("*")]}

        assert modes == {0}
        assert client.config_get("port") == {"port": "0"}


def test_it_is_configured_for_durability(data_dir: Path) -> None:
    """Append-only file with the given appendfsync, no eviction, no snapshots."""
    with EmbeddedServer(data_dir, "always") as server, client_of(server) as client:
        config = client.config_get("append*", "maxmemory-policy", "save")

    assert config["appendonly"] == "yes"
    assert config["appendfsync"] == "always"
    assert config["maxmemory-policy"] == "noeviction"
    assert config["save"] == ""


def test_its_memory_is_limited(data_dir: Path) -> None:
    """To a part of what this process may use, so that it refuses writes before the kernel ends a process."""
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        limit = int(client.config_get("maxmemory")["maxmemory"])

    assert 0.7 < limit / usable_memory_bytes() < 0.8


async def test_data_above_the_memory_limit_is_served_without_writes(data_dir: Path) -> None:
    """A start with more data than fits, as on a smaller machine."""
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        client.set("a", b"x" * 20_000_000)
    with EmbeddedServer(data_dir, config_overrides={"maxmemory": "10mb"}) as server:
        store = open_redis_store(server.url)
        await store.check()
        (value,) = await store.read([b"a"])
        info = await store.info()
        with pytest.raises(StoreUnavailable, match="is full; give its machine or container more memory"):
            await store.put([Put(b"b", b"")])
        await store.delete([b"a"])
        await store.put([Put(b"b", b"")])
        await store.close()

    assert (len(value or b""), info.ready, info.limit_bytes) == (20_000_000, False, 10 * 2**20)
    assert "is full; give its machine" in str(info.problem)
    assert "uses over 80 % of its maxmemory (10.5 MB)" in str(info.warning)


def test_a_killed_server_is_restarted_with_its_data(data_dir: Path) -> None:
    """SIGKILL of the server loses no acknowledged write; it is restarted only when it is dead.

    With ``everysec`` a busy disk could delay the last writes, which would then be lost with the process.
    """
    with EmbeddedServer(data_dir, "always") as server:
        with client_of(server) as client:
            client.mset({f"key{i}": i for i in range(500)})
        assert not server.restart_if_dead()
        former = server.pid
        kill(server)

        assert server.restart_if_dead() == "signal 9"
        assert server.pid != former
        wait_for(server)
        assert_complete(server, 500)
        assert not server.restart_if_dead()


def wait_for(server: EmbeddedServer) -> None:
    """Poll until the server replies."""
    deadline_s = time.monotonic() + HANG_LIMIT_S
    while time.monotonic() < deadline_s:
        try:
            with client_of(server) as client:
                client.ping()
                return
        except redis.ConnectionError:
            time.sleep(0.005)
    raise AssertionError("no reply")


@pytest.mark.services
def test_the_server_ends_with_a_killed_service_and_loses_nothing(
    data_dir: Path, service: Callable[[str], tuple[subprocess.Popen[str], int]]
) -> None:
    """SIGKILL of the service at any moment: the next start succeeds with every acknowledged write."""
    for _ in range(3):
        process, server_pid = service("main")
        count = kill_after(process, 300)
        with EmbeddedServer(data_dir) as server:
            assert not is_alive(server_pid)
            assert_complete(server, count)


@pytest.mark.services
def test_an_orphaned_server_is_shut_down(
    data_dir: Path, service: Callable[[str], tuple[subprocess.Popen[str], int]]
) -> None:
    """If the kernel does not end the server of a killed service, the next start does, without loss."""
    process, server_pid = service("thread")
    count = kill_after(process, 300)
    assert is_alive(server_pid)

    with EmbeddedServer(data_dir) as server:
        assert not is_alive(server_pid)
        assert_complete(server, count)


@pytest.mark.services
def test_an_orphaned_server_that_hangs_is_reported(
    data_dir: Path, service: Callable[[str], tuple[subprocess.Popen[str], int]]
) -> None:
    """Two servers never share a data directory: with a stalled orphan the start fails."""
    process, server_pid = service("thread")
    kill_after(process, 1)
    os.kill(server_pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnavailable, match="earlier run still holds"):
            EmbeddedServer(data_dir).start(timeout_s=0.2)
    finally:
        os.kill(server_pid, signal.SIGCONT)
    with EmbeddedServer(data_dir):
        assert not is_alive(server_pid)


def test_a_directory_has_one_service(data_dir: Path) -> None:
    """A second start fails and names the process; it succeeds after the first has stopped."""
    with EmbeddedServer(data_dir) as server:
        with pytest.raises(ConfigurationError, match=f"in use by process {os.getpid()}"):
            EmbeddedServer(data_dir).start()
        assert server.pid is not None
        assert_complete(server, 0)
    with EmbeddedServer(data_dir):
        pass


@pytest.mark.services
def test_a_second_process_is_rejected(
    data_dir: Path, service: Callable[[str], tuple[subprocess.Popen[str], int]]
) -> None:
    """The lock works between processes."""
    process, _ = service("main")

    with pytest.raises(ConfigurationError, match=f"in use by process {process.pid}"):
        EmbeddedServer(data_dir).start()


def newest_log(data_dir: Path) -> Path:
    """The append-only file that is written."""
    return max(data_dir.glob("appendonlydir/*.incr.aof"))


def test_an_incomplete_last_command_is_dropped(data_dir: Path) -> None:
    """Half a command at the end of the append-only file, as after a power loss, does not prevent a start."""
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        for i in range(50):
            client.set(f"key{i}", i)
    with open(newest_log(data_dir), "ab") as log:
        log.write(b"*3\r\n$3\r\nSET\r\n$5\r\nkey50\r\n$10")

    with EmbeddedServer(data_dir) as server:
        assert_complete(server, 50)
        with client_of(server) as client:
            assert client.get("key50") is None


def test_a_damaged_file_is_reported_with_the_message_of_the_server(data_dir: Path) -> None:
    """Garbage inside the append-only file is not repaired silently; the error names the remedy."""
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        client.set("a", "b")
    log = newest_log(data_dir)
    log.write_bytes(b"rubbish\r\n" + log.read_bytes())

    with pytest.raises(ConfigurationError, match=r"is damaged \(Bad file format .*; restore a backup"):
        EmbeddedServer(data_dir).start()


def test_an_exit_at_the_start_is_reported_with_the_message_of_the_server(data_dir: Path) -> None:
    """With the place of its log."""
    with pytest.raises(StoreUnavailable, match=r"exited at its start: .*server\.log"):
        EmbeddedServer(data_dir, config_overrides={"maxmemory": "none"}).start()


def test_a_failed_restart_reports_the_last_log_message(data_dir: Path) -> None:
    """``restart_if_dead`` returns the reason from the server's log."""
    with EmbeddedServer(data_dir) as server:
        with client_of(server) as client:
            client.set("a", "b")
        kill(server)
        log = newest_log(data_dir)
        log.write_bytes(b"rubbish\r\n" + log.read_bytes())

        assert server.restart_if_dead() == "signal 9"
        while server.pid is not None:
            time.sleep(0.001)
        assert "ormat" in server.restart_if_dead()


def kill(server: EmbeddedServer) -> None:
    """Send SIGKILL and wait until the server is dead."""
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    while server.pid is not None:
        time.sleep(0.001)


def test_a_long_path_has_its_socket_in_a_temporary_directory(tmp_path: Path) -> None:
    """Socket addresses are limited to about 100 bytes; a long path works, and nothing is left behind."""
    deep = tmp_path / ("d" * 60) / ("e é\"'" * 12)
    with EmbeddedServer(deep) as server:
        socket_dir = Path(server._socket_path).parent
        assert socket_dir != deep
        assert socket_dir.stat().st_mode & 0o077 == 0
        with client_of(server) as client:
            assert client.set("a", "b")

    assert not socket_dir.exists()


def test_a_path_with_special_characters_works(tmp_path: Path) -> None:
    """Spaces, quotes, percent signs and accents in the directory's name."""
    with EmbeddedServer(tmp_path / "a b%20\"é'#?") as server, client_of(server) as client:
        assert client.set("a", "b")


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    """Not even the lock file can be written; nothing is left behind."""
    (tmp_path / "lock").symlink_to("/dev/full")

    with pytest.raises(StoreUnavailable, match=r"cannot be started .* check its disk"):
        EmbeddedServer(tmp_path).start()
    (tmp_path / "lock").unlink()
    with EmbeddedServer(tmp_path) as server, client_of(server) as client:
        assert client.ping()


def test_an_unusable_directory_is_one_sentence(tmp_path: Path) -> None:
    """A file at the path of the directory."""
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigurationError, match="cannot be used"):
        EmbeddedServer(tmp_path / "file").start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_another_user_prevent_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A retry would not help, so it is no StoreUnavailable."""
    with EmbeddedServer(tmp_path):
        pass
    os.chown(tmp_path / "lock", 4711, 4711)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # as for a user who is not root

    with pytest.raises(ConfigurationError, match="lock belongs to user 4711, not to user 0: `chown -R 0: "):
        EmbeddedServer(tmp_path).start()


def test_start_and_stop_are_idempotent(data_dir: Path) -> None:
    """Starting a started and stopping a stopped server change nothing."""
    server = EmbeddedServer(data_dir)
    server.stop()
    server.start()
    pid = server.pid
    server.start()

    assert server.pid == pid
    server.stop()
    server.stop()
    assert server.pid is None
    assert not server.restart_if_dead()


def test_a_forked_child_does_not_stop_it(data_dir: Path) -> None:
    """``stop`` in a forked worker does not affect the server and locks of the parent."""
    with EmbeddedServer(data_dir) as server:
        child = os.fork()
        if child == 0:
            try:
                server.stop()
            finally:
                os._exit(0)
        os.waitpid(child, 0)

        assert server.pid is not None
        with pytest.raises(ConfigurationError, match="in use"):
            EmbeddedServer(data_dir).start()


def test_a_value_that_is_being_sent_is_not_affected_by_later_writes(data_dir: Path) -> None:
    """Large values are sent without copying; a slow reader still gets them as they were at its request."""
    with EmbeddedServer(data_dir) as server, client_of(server) as writer, client_of(server) as reader:
        value = os.urandom(1 << 20)  # several of them are more than a socket holds
        writer.set("bucket", value)
        connection = reader.connection_pool.get_connection()
        connection.send_packed_command(connection.pack_commands([("GET", "bucket")] * 8))
        answers = [connection.read_response()]
        writer.append("bucket", b"more")
        answers.append(writer.get("bucket"))
        writer.delete("bucket")
        answers += [connection.read_response() for _ in range(7)]

        assert answers == [value, value + b"more", *[value] * 7]
        assert writer.config_get("min-string-size-avoid-copy-reply")
