"""What a server's own report (INFO and CONFIG GET) means for us. Pure: reports in, sentences out.

A ``Node`` is one server; a cluster is judged by all its primaries, and is as good as the worst.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aggregator.store.base import StoreInfo

MIN_MAJOR_VERSION = 7


@dataclass(frozen=True, slots=True)
class Node:
    """One server: where it is, its INFO (of a cluster's node also its CLUSTER INFO), and its CONFIG.

    ``config`` is {} when the server does not let us read it.
    """

    address: str
    info: Mapping[str, Any]
    config: Mapping[str, str]


def describe_version(node: Node) -> str:
    """Name and version, as in ``Valkey 9.1.2`` or ``Redis 7.0.15``."""
    if "valkey_version" in node.info:
        return f"Valkey {node.info['valkey_version']}"
    return f"Redis {node.info.get('redis_version', 'of unknown version')}"


def describe_durability(node: Node) -> str:
    """What survives what, in plain words."""
    if not int(node.info.get("aof_enabled", 0)):
        if node.config.get("save") == "":
            return "nothing is kept: a restart of the server forgets everything (appendonly no, save off)"
        return "snapshots only: a crash of the server loses what came after the last one (appendonly no)"
    sync = node.config.get("appendfsync")
    if sync == "always":
        return "every write is on disk before it is acknowledged (appendfsync always)"
    if sync == "everysec":
        return "survives a crash of the server; a power loss may lose up to 2 s (appendfsync everysec)"
    if sync == "no":
        return "survives a crash of the server; a power loss may lose 30 s or more (appendfsync no)"
    return "survives a crash of the server; what a power loss takes is not known (CONFIG GET is forbidden)"


def find_problem(node: Node) -> str | None:
    """Why this server cannot take writes now, as one sentence; None when it can."""
    info = node.info
    if int(info.get("loading", 0)):
        percent = info.get("loading_loaded_perc", "?")
        return f"The store at {node.address} is still loading its data ({percent} %); wait."
    if info.get("role") not in (None, "master"):
        return f"The store at {node.address} is a read-only replica; point store_url to the primary."
    if info.get("aof_last_write_status", "ok") != "ok":
        return f"The store at {node.address} cannot write its log; look at its disk."
    if info.get("rdb_last_bgsave_status", "ok") != "ok" and _needs_snapshots_to_write(node):
        return (
            f"The store at {node.address} could not write its last snapshot and takes no writes until it can; "
            "look at its disk and memory."
        )
    if (in_step := info.get("min_slaves_good_slaves")) is not None and int(in_step) < _min_replicas(node):
        return (
            f"The store at {node.address} has {in_step} replicas in step and takes no writes without "
            f"{_min_replicas(node)} (min-replicas-to-write); bring them back."
        )
    if info.get("cluster_state", "ok") != "ok":
        return f"The cluster node at {node.address} takes no part now; wait for its failover or repair it."
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        return (
            f"The store at {node.address} now has maxmemory-policy {policy}, which silently forgets articles; "
            "run CONFIG SET maxmemory-policy noeviction."
        )
    limit = int(info.get("maxmemory", 0))
    if limit and int(info.get("used_memory", 0)) >= limit:
        return f"The store at {node.address} is full; raise its maxmemory or shorten the retention."
    return None


def _needs_snapshots_to_write(node: Node) -> bool:
    """Whether a snapshot that fails ends all writing."""
    return bool(node.config.get("save")) and node.config.get("stop-writes-on-bgsave-error") == "yes"


def _min_replicas(node: Node) -> int:
    """Of a server that counts those in step, which it does only where it wants some."""
    return int(node.config.get("min-replicas-to-write", 1))


def find_configuration_errors(node: Node, *, cluster: bool) -> list[str]:
    """Why this server must not be relied upon at all; empty when it may."""
    found = []
    major = str(node.info.get("redis_version", "0")).split(".")[0]
    if not major.isdigit() or int(major) < MIN_MAJOR_VERSION:
        found.append(
            f"store_url: {node.address} runs {describe_version(node)}; Redis >= 7 or Valkey is needed."
        )
    policy = node.info.get("maxmemory_policy") or node.config.get("maxmemory-policy")
    if policy != "noeviction":
        found.append(
            f"store_url: {node.address} has maxmemory-policy {policy or 'unknown'}, which silently forgets "
            "articles; run CONFIG SET maxmemory-policy noeviction and put it into the server's configuration."
        )
    if node.info.get("role") not in (None, "master"):
        found.append(f"store_url: {node.address} is a read-only replica; point store_url to the primary.")
    if bool(int(node.info.get("cluster_enabled", 0))) != cluster:
        other = "redis://" if cluster else "redis+cluster://"
        found.append(
            f"store_url: {node.address} is {'not ' if cluster else ''}a cluster node; write {other} instead."
        )
    return found


def summarize(nodes: Sequence[Node], *, cluster: bool) -> StoreInfo:
    """One StoreInfo for all ``nodes`` (at least one)."""
    problems = [sentence for node in nodes if (sentence := find_problem(node))]
    return StoreInfo(
        kind="redis-cluster" if cluster else "redis",
        version=", ".join(sorted({describe_version(node) for node in nodes})),
        memory_bytes=sum(int(node.info.get("used_memory", 0)) for node in nodes),
        durability="; ".join(sorted({describe_durability(node) for node in nodes})),
        ready=not problems,
        problem=problems[0] if problems else None,
    )
