"""The embedded server: what survives which death, and who may use a directory."""

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
from aggregator.store.embedded import EmbeddedServer
from tests.support.processes import is_alive

SERVICE = """
import sys, threading
import redis
from aggregator.store.embedded import EmbeddedServer
server = EmbeddedServer(sys.argv[1])
if sys.argv[2] == "thread":  # then the kernel does not end the server with us
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
    """Starts a service process that writes key after key and prints each one acknowledged."""
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
    return redis.Redis.from_url(server.url)


def acknowledged(process: subprocess.Popen[str], count: int) -> int:
    """Wait for ``count`` acknowledgements, kill -9 the service; how many it had printed at the end."""
    assert process.stdout is not None
    seen = [int(process.stdout.readline()) for _ in range(count)]
    process.kill()
    seen += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    process.wait()
    return len(seen)


def assert_complete(server: EmbeddedServer, count: int) -> None:
    """All keys below ``count`` are there."""
    with client_of(server) as client:
        assert client.mget([f"key{i}" for i in range(count)]) == [b"%d" % i for i in range(count)]


def test_data_outlives_a_stop(data_dir: Path) -> None:
    """What was written before a stop is there after the next start, at the same url."""
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        url = server.url
        client.set("a", "b")
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        assert server.url == url
        assert client.get("a") == b"b"


def test_the_directory_is_private(data_dir: Path) -> None:
    """Directory, socket and files are for this user only, and no network port is open."""
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        client.set("a", "b")
        modes = {path.stat().st_mode & 0o077 for path in [data_dir, *data_dir.rglob("*")]}

        assert modes == {0}
        assert client.config_get("port") == {"port": "0"}


def test_it_is_configured_to_keep_everything(data_dir: Path) -> None:
    """Log on, as durable as asked for, nothing evicted."""
    with EmbeddedServer(data_dir, "always") as server, client_of(server) as client:
        config = client.config_get("append*", "maxmemory-policy", "save")

    assert config["appendonly"] == "yes"
    assert config["appendfsync"] == "always"
    assert config["maxmemory-policy"] == "noeviction"
    assert config["save"] == ""


def test_a_killed_server_is_revived_with_its_data(data_dir: Path) -> None:
    """kill -9 of the server loses nothing acknowledged; revive starts another, and only then.

    Under ``everysec`` a disk that is just busy would have the last writes wait, and go with the process.
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
    """Until the server answers."""
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s:
        try:
            with client_of(server) as client:
                client.ping()
                return
        except redis.ConnectionError:
            time.sleep(0.005)
    raise AssertionError("no answer")


@pytest.mark.services
def test_a_killed_service_takes_its_server_along_and_loses_nothing(
    data_dir: Path, service: Callable[[str], tuple[subprocess.Popen[str], int]]
) -> None:
    """kill -9 of the service, at any moment: a new one starts at once, with all that was acknowledged."""
    for _ in range(3):
        process, server_pid = service("main")
        count = acknowledged(process, 300)
        with EmbeddedServer(data_dir) as server:
            assert not is_alive(server_pid)
            assert_complete(server, count)


@pytest.mark.services
def test_an_orphan_is_taken_over(
    data_dir: Path, service: Callable[[str], tuple[subprocess.Popen[str], int]]
) -> None:
    """Where the kernel does not end the server of a killed service, the next service does, losing nothing."""
    process, server_pid = service("thread")
    count = acknowledged(process, 300)
    assert is_alive(server_pid)

    with EmbeddedServer(data_dir) as server:
        assert not is_alive(server_pid)
        assert_complete(server, count)


@pytest.mark.services
def test_an_orphan_that_does_not_answer_is_named(
    data_dir: Path, service: Callable[[str], tuple[subprocess.Popen[str], int]]
) -> None:
    """Never two servers on one log: a stalled orphan means a clear refusal."""
    process, server_pid = service("thread")
    acknowledged(process, 1)
    os.kill(server_pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnavailable, match="earlier run still holds"):
            EmbeddedServer(data_dir).start(timeout_s=0.2)
    finally:
        os.kill(server_pid, signal.SIGCONT)
    with EmbeddedServer(data_dir):
        assert not is_alive(server_pid)


def test_a_directory_has_one_service(data_dir: Path) -> None:
    """A second start is refused, naming the process; it works after the first has stopped."""
    with EmbeddedServer(data_dir) as server:
        with pytest.raises(ConfigurationError, match=f"in use by process {os.getpid()}"):
            EmbeddedServer(data_dir).start()
        assert server.pid is not None
        assert_complete(server, 0)
    with EmbeddedServer(data_dir):
        pass


@pytest.mark.services
def test_another_process_is_refused_too(
    data_dir: Path, service: Callable[[str], tuple[subprocess.Popen[str], int]]
) -> None:
    """The lock holds between processes."""
    process, _ = service("main")

    with pytest.raises(ConfigurationError, match=f"in use by process {process.pid}"):
        EmbeddedServer(data_dir).start()


def newest_log(data_dir: Path) -> Path:
    """The log file that is appended to."""
    return max(data_dir.glob("appendonlydir/*.incr.aof"))


def test_a_torn_tail_is_cut_off(data_dir: Path) -> None:
    """Half a command at the end of the log, as a power loss leaves it, does not stop the start."""
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        for i in range(50):
            client.set(f"key{i}", i)
    with open(newest_log(data_dir), "ab") as log:
        log.write(b"*3\r\n$3\r\nSET\r\n$5\r\nkey50\r\n$10")

    with EmbeddedServer(data_dir) as server:
        assert_complete(server, 50)
        with client_of(server) as client:
            assert client.get("key50") is None


def test_a_damaged_log_is_reported_with_the_servers_words(data_dir: Path) -> None:
    """Rubbish inside the log is not repaired silently; the sentence says where to look."""
    with EmbeddedServer(data_dir) as server, client_of(server) as client:
        client.set("a", "b")
    log = newest_log(data_dir)
    log.write_bytes(b"rubbish\r\n" + log.read_bytes())

    with pytest.raises(StoreUnavailable, match=r"ended at its start: .*server\.log") as caught:
        EmbeddedServer(data_dir).start()
    assert "ormat" in str(caught.value)


def test_a_server_that_cannot_come_back_says_why(data_dir: Path) -> None:
    """Whoever revives it learns its last words, not only that it is away again."""
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
    """SIGKILL, and until it is dead."""
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    while server.pid is not None:
        time.sleep(0.001)


def test_a_long_path_gets_its_socket_elsewhere(tmp_path: Path) -> None:
    """Socket addresses are short; a deep directory still works, and leaves nothing behind."""
    deep = tmp_path / ("d" * 60) / ("e é\"'" * 12)
    with EmbeddedServer(deep) as server:
        place = Path(server._socket_path).parent
        assert place != deep
        assert place.stat().st_mode & 0o077 == 0
        with client_of(server) as client:
            assert client.set("a", "b")

    assert not place.exists()


def test_a_path_with_odd_characters_works(tmp_path: Path) -> None:
    """Spaces, quotes, percent signs and accents in the directory's name."""
    with EmbeddedServer(tmp_path / "a b%20\"é'#?") as server, client_of(server) as client:
        assert client.set("a", "b")


def test_a_disk_that_takes_nothing_is_one_sentence(tmp_path: Path) -> None:
    """A full one, where even the lock cannot say who holds it; nothing is left behind."""
    (tmp_path / "lock").symlink_to("/dev/full")

    with pytest.raises(StoreUnavailable, match=r"cannot be started .* look at its disk"):
        EmbeddedServer(tmp_path).start()
    (tmp_path / "lock").unlink()
    with EmbeddedServer(tmp_path) as server, client_of(server) as client:
        assert client.ping()


def test_an_unusable_directory_is_one_sentence(tmp_path: Path) -> None:
    """A file where the directory should be."""
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigurationError, match="cannot be used"):
        EmbeddedServer(tmp_path / "file").start()


def test_start_and_stop_may_be_repeated(data_dir: Path) -> None:
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
    """stop in a forked worker leaves server and lock to the parent."""
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


def test_a_value_on_its_way_is_not_what_becomes_of_it(data_dir: Path) -> None:
    """Large values are sent from where they are: a reader that is slow gets them as they were when it asked."""
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
