"""Store errors: each driver error becomes one sentence with a remedy, and bugs stay bugs."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis import exceptions as driver

from aggregator.store.diagnostics import (
    DRIVER_ERRORS,
    NOT_A_CLUSTER_MESSAGE,
    Node,
    describe,
    describe_durability,
    describe_version,
    find_configuration_errors,
    find_problem,
    find_warning,
    first_line,
    is_configuration_error,
    is_store_failure,
    root_cause,
    summarize,
)
from aggregator.store.disk import DiskSpace

ADDRESS = "store.example:6379"
EXPIRED = (
    "Error 1: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1)"
)
UNTRUSTED = driver.ConnectionError(
    "Error 1 connecting: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
    "self-signed certificate (_ssl.c:1000)."
)


def caused_by(error: Exception, cause: Exception) -> Exception:
    """``error``, raised from ``cause``."""
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (driver.BusyLoadingError("LOADING"), "still loading its data"),
        (driver.AuthenticationError("WRONGPASS"), "rejects this user name or password"),
        (driver.NoPermissionError("no permissions"), "does not permit this user .* change its ACL"),
        (driver.ConnectionError(EXPIRED), r"not trusted \(certificate has expired\); renew it"),
        (caused_by(driver.ConnectionError("Error -3"), socket.gaierror(-3, "try again")), "check DNS"),
        (driver.MaxConnectionsError("too many"), "connections to the store at .* are busy"),
        (caused_by(driver.ConnectionError("none free"), TimeoutError()), "All connections .* are busy"),
        (driver.TimeoutError("Timeout reading"), "did not answer in time"),
        (driver.TimeoutError("Timeout connecting to server"), "did not accept a connection in time"),
        (driver.ReadOnlyError("a replica"), "is read-only"),
        (driver.OutOfMemoryError("maxmemory"), "is full"),
        (driver.ClusterDownError("CLUSTERDOWN"), "no primary for some hash slots"),
        (driver.MovedError("12813 127.0.0.1:24320"), "no primary for some hash slots"),
        (driver.NoScriptError("NOSCRIPT"), "lost its cached scripts"),
        (driver.ConnectionError("refused"), "cannot be reached"),
        (ConnectionResetError("reset"), "cannot be reached"),
        (driver.RedisClusterException(NOT_A_CLUSTER_MESSAGE), "is not a cluster node"),
        (UNTRUSTED, r"is not trusted \(self-signed certificate\)"),
        (
            driver.ResponseError("MISCONF Errors on disk. See the log."),
            r"its disk .*\(MISCONF Errors on disk\)",
        ),
        (driver.ResponseError("NOREPLICAS Not enough good replicas"), "without its replicas"),
        (driver.ResponseError("WRONGTYPE Wrong kind\nof value"), "rejected a command: WRONGTYPE Wrong kind"),
    ],
)
def test_an_error_becomes_one_sentence_with_the_address(error: Exception, part: str) -> None:
    """The most specific sentence; it names the server and has one line."""
    text = describe(error, ADDRESS)

    assert re.search(part, text), text
    assert ADDRESS in text
    assert text.endswith(".")
    assert "\n" not in text


def test_a_unix_socket_is_not_asked_about_tls() -> None:
    """It is that of an embedded store, as a rule, which its service restarts."""
    said = describe(driver.ConnectionError("refused"), "/srv/news/store.sock")

    assert "an embedded one is restarted by its service" in said and "TLS" not in said


@pytest.mark.parametrize("kind", DRIVER_ERRORS)
def test_driver_errors_are_store_failures(kind: type[Exception]) -> None:
    """All that redis-py and the network raise."""
    assert is_store_failure(kind("any message"))


def test_other_errors_are_bugs() -> None:
    """A RuntimeError counts only with the message of a closed transport."""
    assert is_store_failure(RuntimeError("unable to write; the handler is closed"))
    assert not is_store_failure(RuntimeError("dictionary changed size during iteration"))
    assert not is_store_failure(KeyError("any"))


def test_only_errors_that_waiting_does_not_resolve_are_configuration_errors() -> None:
    """Credentials, cluster mode and certificates; an outage is not one."""
    assert is_configuration_error(driver.AuthenticationError("WRONGPASS"))
    assert is_configuration_error(driver.RedisClusterException(NOT_A_CLUSTER_MESSAGE))
    assert is_configuration_error(UNTRUSTED)
    assert is_configuration_error(driver.ResponseError("DB index is out of range"))
    assert not is_configuration_error(driver.BusyLoadingError("LOADING"))
    assert not is_configuration_error(ConnectionRefusedError("refused"))
    assert not is_configuration_error(None)


def test_the_root_cause_is_below_all_wrapping_connection_errors() -> None:
    """Only causes of the driver are followed: a timeout below a ConnectionError is not an error reply."""
    reply = driver.OutOfMemoryError("maxmemory")
    wrapped = caused_by(driver.ConnectionError("outer"), caused_by(driver.ConnectionError("inner"), reply))
    busy = caused_by(driver.ConnectionError("none free"), TimeoutError())

    assert root_cause(wrapped) is reply
    assert root_cause(busy) is busy
    assert root_cause(reply) is reply


@pytest.mark.parametrize(
    ("message", "line"),
    [("", ""), ("Out of order.", "Out of order"), ("one.\ntwo.", "one"), ("x" * 300, "x" * 200)],
)
def test_the_first_line_is_short_and_has_no_period(message: str, line: str) -> None:
    """It is embedded in a separate sentence."""
    assert first_line(ValueError(message)) == line


HEALTHY: dict[str, Any] = {
    "redis_version": "7.2.4",
    "role": "master",
    "loading": 0,
    "aof_enabled": 1,
    "aof_last_write_status": "ok",
    "maxmemory": 0,
    "maxmemory_policy": "noeviction",
    "used_memory": 100,
    "cluster_enabled": 0,
}


def node(config: dict[str, str] | None = None, **changes: Any) -> Node:
    """A healthy server with some fields of its INFO changed."""
    return Node("here:1", {**HEALTHY, **changes}, config or {})


@pytest.mark.parametrize(
    "info", [{"aof_last_write_status": "err"}, {"min_slaves_good_slaves": 0, "role": "master"}]
)
def test_refused_writes_name_a_full_disk_of_this_machine(info: dict[str, Any]) -> None:
    """Failed writes to the log, and a server that was made to refuse writes before they fail."""
    full = replace(node(**info), disk=DiskSpace(Path("/data"), 0, 10**12))
    spacious = replace(node(**info), disk=DiskSpace(Path("/data"), 10**11, 10**12))

    assert "The disk of /data is full" in str(find_problem(full))
    assert "is full" not in str(find_problem(spacious))


def test_a_store_that_is_nearly_full_is_a_warning() -> None:
    """From four fifths of maxmemory; there may be no limit."""
    nearly = node(used_memory=81_000_000, maxmemory=100_000_000)
    assert "uses over 80 % of its maxmemory (100.0 MB): raise its maxmemory, or" in str(find_warning(nearly))
    embedded = Node("/data/store.sock", nearly.info, {})
    assert "(100.0 MB): give its machine or container more memory, or move" in str(find_warning(embedded))
    assert find_warning(node(used_memory=80, maxmemory=100)) is None
    assert find_warning(node(used_memory=10**12, maxmemory=0)) is None


def test_a_store_just_below_its_limit_is_full() -> None:
    """A refused write frees its buffers: the next INFO would report a store that is not full."""
    full = node(used_memory=999, maxmemory=1000)
    assert "is full; raise its maxmemory, then" in str(find_problem(full))
    assert "is full; give its machine" in str(find_problem(Node("/data/store.sock", full.info, {})))
    assert find_problem(node(used_memory=990, maxmemory=1000)) is None
    assert find_problem(node(used_memory=10**12, maxmemory=0)) is None


def test_a_log_that_is_not_rewritten_is_a_warning() -> None:
    """Switched off for lack of room, or failed; switched off with room is the operator's decision."""
    off = node({"auto-aof-rewrite-percentage": "0"}, aof_current_size=10**10)

    assert "cannot be rewritten" in str(find_warning(replace(off, disk=DiskSpace(Path("d"), 10**9, 10**12))))
    assert find_warning(replace(off, disk=DiskSpace(Path("d"), 10**11, 10**12))) is None
    assert "could not rewrite" in str(find_warning(node(aof_last_bgrewrite_status="err")))
    assert summarize([node(aof_last_bgrewrite_status="err")], "redis").ready


def test_a_healthy_server_has_no_problem() -> None:
    """No problem, no configuration error, ready."""
    assert find_problem(node()) is None
    assert find_configuration_errors(node(), cluster=False) == []
    assert summarize([node()], "redis").ready


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loading": 1, "loading_loaded_perc": 12.5}, "loading its data (12.5%)"),
        ({"role": "slave"}, "read-only replica"),
        ({"aof_last_write_status": "err"}, "cannot write its append-only file"),
        ({"maxmemory": 100}, "is full"),
        ({"maxmemory_policy": "allkeys-lru"}, "now has maxmemory-policy allkeys-lru"),
        ({"cluster_state": "fail"}, "has no primary for some hash slots"),
    ],
)
def test_problems_are_one_sentence_with_the_address(changes: dict[str, Any], message: str) -> None:
    """Each state in which writes fail is reported with the address of the server."""
    sentence = find_problem(node(**changes))

    assert sentence is not None
    assert message in sentence and "here:1" in sentence
    assert summarize([node(), node(**changes)], "redis-cluster").problem == sentence


@pytest.mark.parametrize(
    ("config", "report", "pattern"),
    [
        (
            {"min-replicas-to-write": "2"},
            {"min_slaves_good_slaves": 1},
            "1 connected replicas .* fewer than 2",
        ),
        ({}, {"min_slaves_good_slaves": 0}, "0 connected replicas .* fewer than 1"),
        ({"min-replicas-to-write": "2"}, {"min_slaves_good_slaves": 2}, None),
        (
            {"save": "3600 1", "stop-writes-on-bgsave-error": "yes"},
            {"rdb_last_bgsave_status": "err"},
            "last snapshot",
        ),
        ({"save": "", "stop-writes-on-bgsave-error": "yes"}, {"rdb_last_bgsave_status": "err"}, None),
        ({"save": "3600 1", "stop-writes-on-bgsave-error": "no"}, {"rdb_last_bgsave_status": "err"}, None),
        ({}, {"rdb_last_bgsave_status": "err"}, None),
    ],
)
def test_conditions_that_reject_writes_only_if_configured(
    config: dict[str, str], report: dict[str, Any], pattern: str | None
) -> None:
    """Missing replicas and failed snapshots are problems only if the server then rejects writes."""
    sentence = find_problem(node(config, **report))

    if pattern is None:
        assert sentence is None
    else:
        assert sentence is not None and re.search(pattern, sentence)


@pytest.mark.parametrize(
    ("changes", "cluster", "message"),
    [
        ({"redis_version": "6.2.14"}, False, "runs Redis 6.2.14"),
        ({"maxmemory_policy": "allkeys-lru"}, False, "CONFIG SET maxmemory-policy noeviction"),
        ({"maxmemory_policy": ""}, False, "unknown"),
        ({"role": "slave"}, False, "replica"),
        ({"cluster_enabled": 1}, False, "write redis+cluster:// instead"),
        ({}, True, "is not a cluster node"),
    ],
)
def test_configuration_errors_name_the_remedy(changes: dict[str, Any], cluster: bool, message: str) -> None:
    """Each one names the setting, the server and the remedy."""
    (sentence,) = find_configuration_errors(node(**changes), cluster=cluster)

    assert message in sentence
    assert sentence.startswith("store_url: here:1 ")


@pytest.mark.parametrize(
    ("enabled", "config", "message"),
    [
        (1, {"appendfsync": "always"}, "before it is acknowledged"),
        (1, {"appendfsync": "everysec"}, "up to 2 s"),
        (1, {"appendfsync": "no"}, "30 s or more"),
        (1, {}, "not known"),
        (0, {"save": ""}, "loses everything"),
        (0, {"save": "3600 1"}, "snapshots only"),
        (0, {}, "snapshots only"),
    ],
)
def test_durability_is_described_in_plain_words(enabled: int, config: dict[str, str], message: str) -> None:
    """Every combination of persistence settings has its description."""
    assert message in describe_durability(node(config, aof_enabled=enabled))


def test_a_cluster_is_summarized_over_its_primaries() -> None:
    """Memory adds up; versions and durability are listed once each."""
    info = summarize([node(), node(valkey_version="9.1.2"), node()], "redis-cluster")

    assert info.kind == "redis-cluster"
    assert (info.memory_bytes, info.limit_bytes) == (300, 0)
    limited = summarize([node(maxmemory=1000), node(maxmemory=2000)], "redis-cluster")
    assert (limited.memory_bytes, limited.limit_bytes) == (200, 3000)
    assert summarize([node(maxmemory=1000), node()], "redis-cluster").limit_bytes == 0
    assert info.version == "Redis 7.2.4, Valkey 9.1.2"
    assert describe_version(Node("x", {}, {})) == "Redis of unknown version"
