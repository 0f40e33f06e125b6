"""What a server's report means: durability in words, problems, refusals."""

from __future__ import annotations

import re
from typing import Any

import pytest

from aggregator.store.health import (
    Node,
    describe_durability,
    describe_version,
    find_configuration_errors,
    find_problem,
    summarize,
)

SOUND: dict[str, Any] = {
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
    """A sound server with some lines of its report changed."""
    return Node("here:1", {**SOUND, **changes}, config or {})


def test_a_sound_server_has_nothing_against_it() -> None:
    """No problem, no refusal, ready."""
    assert find_problem(node()) is None
    assert find_configuration_errors(node(), cluster=False) == []
    assert summarize([node()], cluster=False).ready


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"loading": 1, "loading_loaded_perc": 12.5}, "loading its data (12.5 %)"),
        ({"role": "slave"}, "read-only replica"),
        ({"aof_last_write_status": "err"}, "cannot write its log"),
        ({"maxmemory": 100}, "is full"),
        ({"maxmemory_policy": "allkeys-lru"}, "now has maxmemory-policy allkeys-lru"),
        ({"cluster_state": "fail"}, "takes no part"),
    ],
)
def test_problems_are_one_sentence_with_the_address(changes: dict[str, Any], says: str) -> None:
    """Each state in which writes fail is named, with its place."""
    sentence = find_problem(node(**changes))

    assert sentence is not None
    assert says in sentence and "here:1" in sentence
    assert summarize([node(), node(**changes)], cluster=True).problem == sentence


@pytest.mark.parametrize(
    ("config", "report", "says"),
    [
        ({"min-replicas-to-write": "2"}, {"min_slaves_good_slaves": 1}, "1 replicas in step .* without 2"),
        ({}, {"min_slaves_good_slaves": 0}, "0 replicas in step .* without 1"),
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
def test_what_ends_all_writing_by_choice(
    config: dict[str, str], report: dict[str, Any], says: str | None
) -> None:
    """Replicas that are away, and snapshots that fail, are a problem only where the server is set to stop for them."""
    sentence = find_problem(node(config, **report))

    assert (sentence is None) == (says is None)
    assert says is None or re.search(says, sentence)


@pytest.mark.parametrize(
    ("changes", "cluster", "says"),
    [
        ({"redis_version": "6.2.14"}, False, "runs Redis 6.2.14"),
        ({"maxmemory_policy": "allkeys-lru"}, False, "CONFIG SET maxmemory-policy noeviction"),
        ({"maxmemory_policy": ""}, False, "unknown"),
        ({"role": "slave"}, False, "replica"),
        ({"cluster_enabled": 1}, False, "write redis+cluster:// instead"),
        ({}, True, "is not a cluster node"),
    ],
)
def test_refusals_say_what_to_do(changes: dict[str, Any], cluster: bool, says: str) -> None:
    """Each reason not to rely on a server names the setting, the server and the way out."""
    (sentence,) = find_configuration_errors(node(**changes), cluster=cluster)

    assert says in sentence
    assert sentence.startswith("store_url: here:1 ")


@pytest.mark.parametrize(
    ("enabled", "config", "says"),
    [
        (1, {"appendfsync": "always"}, "before it is acknowledged"),
        (1, {"appendfsync": "everysec"}, "up to 2 s"),
        (1, {"appendfsync": "no"}, "30 s or more"),
        (1, {}, "not known"),
        (0, {"save": ""}, "forgets everything"),
        (0, {"save": "3600 1"}, "snapshots only"),
        (0, {}, "snapshots only"),
    ],
)
def test_durability_is_told_in_plain_words(enabled: int, config: dict[str, str], says: str) -> None:
    """Every setting of the log has its sentence."""
    assert says in describe_durability(node(config, aof_enabled=enabled))


def test_a_cluster_is_the_sum_of_its_primaries() -> None:
    """Memory adds up; versions and durability are listed once each."""
    info = summarize([node(), node(valkey_version="9.1.2"), node()], cluster=True)

    assert info.kind == "redis-cluster"
    assert info.memory_bytes == 300
    assert info.version == "Redis 7.2.4, Valkey 9.1.2"
    assert describe_version(Node("x", {}, {})) == "Redis of unknown version"
