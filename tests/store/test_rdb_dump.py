"""RDB dumps of running servers: complete, or an error; and nothing is left behind in the server."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aggregator.errors import ConfigurationError, StoreUnavailable
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.rdb_dump import download_rdb
from tests.support.server_fixture import ROOT
from tests.support.slow_snapshot import slow_down_snapshots, wait_for_snapshot
from tests.support.stores import direct_client

DOWNLOAD = """
import sys; from pathlib import Path; from aggregator.store.rdb_dump import download_rdb
download_rdb(sys.argv[1], Path(sys.argv[2]))
"""


def start_download(url: str, path: Path) -> subprocess.Popen[bytes]:
    """A process that downloads a snapshot."""
    return subprocess.Popen(
        [sys.executable, "-c", DOWNLOAD, url, str(path)], cwd=ROOT, stderr=subprocess.PIPE
    )


@pytest.mark.integration
@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_a_snapshot_is_a_complete_file(tmp_path: Path, diskless: str) -> None:
    """Whether the server announces its length or marks its end."""
    path = tmp_path / "snapshot"
    with EmbeddedServer(tmp_path / "data", config_overrides={"repl-diskless-sync": diskless}) as server:
        with direct_client(server.url) as client:
            client.mset({f"{{a}}{number}": os.urandom(2000) for number in range(2000)})
            client.set("b", "1", px=1_000_000)

        found = download_rdb(server.url, path)

    content = path.read_bytes()
    assert (found.size_bytes, found.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert (found.keys, found.database) == (2001, 0)
    assert found.server.startswith("Valkey 9")
    assert content[-9:-8] == b"\xff"  # the end of an RDB file, before its CRC-64
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.integration
def test_a_killed_download_leaves_the_server_as_it_was(tmp_path: Path) -> None:
    """The server ends its child process, has no replica, and its configuration is the same."""
    with (
        EmbeddedServer(tmp_path / "data") as server,
        direct_client(server.url) as client,
    ):
        slow_down_snapshots(client)
        before = client.config_get("*")
        with start_download(server.url, tmp_path / "snapshot") as process:
            wait_for_snapshot(client, running=True)
            process.kill()
        wait_for_snapshot(client, running=False)

        assert client.config_get("*") == before
        assert client.info("replication")["connected_slaves"] == 0
        assert client.set("a", "b")
        client.config_set("rdb-key-save-delay", 0)
        assert download_rdb(server.url, tmp_path / "next").keys == 2001


@pytest.mark.integration
def test_a_server_that_dies_is_an_error(tmp_path: Path) -> None:
    """The file is incomplete then."""
    with (
        EmbeddedServer(tmp_path / "data") as server,
        direct_client(server.url) as client,
    ):
        slow_down_snapshots(client)
        with start_download(server.url, tmp_path / "snapshot") as process:
            wait_for_snapshot(client, running=True)
            assert server.pid is not None
            os.kill(server.pid, signal.SIGKILL)
            _, error = process.communicate()

    assert process.returncode == 1
    assert b"StoreUnavailable: The store " in error


def test_a_user_that_may_not_read_snapshots_is_reported(valkey_url: str, tmp_path: Path) -> None:
    """As on managed servers."""
    with direct_client(valkey_url) as client:
        client.execute_command("ACL SETUSER", "reader", "on", ">pw", "~*", "+@all", "-sync")
    url = valkey_url.replace("unix://", "unix://reader:pw@")

    with pytest.raises(
        ConfigurationError, match=r"does not send snapshots \(.*sync.*allow SYNC and REPLCONF"
    ):
        download_rdb(url, tmp_path / "snapshot")


def test_an_unreachable_server_is_reported(tmp_path: Path) -> None:
    """With its address."""
    with pytest.raises(StoreUnavailable, match=r"absent\.sock"):
        download_rdb(f"unix://{tmp_path}/absent.sock", tmp_path / "snapshot")


def test_a_cluster_is_refused(tmp_path: Path) -> None:
    """Its servers cannot be read at one instant."""
    with pytest.raises(ConfigurationError, match="Redis Cluster cannot be copied at one instant"):
        download_rdb("redis+cluster://127.0.0.1:1", tmp_path / "snapshot")


@pytest.mark.redis
def test_a_redis_server_sends_a_snapshot_of_the_selected_database(redis_url: str, tmp_path: Path) -> None:
    """The URL names the database."""
    url = f"{redis_url}?db=2"
    with direct_client(url) as client:
        client.set("a", "b")

    found = download_rdb(url, tmp_path / "snapshot")

    assert (found.database, found.keys) == (2, 1)
    assert found.server.startswith("Redis 7")
