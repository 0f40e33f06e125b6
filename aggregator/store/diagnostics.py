"""Sentences on a Redis or Valkey server: errors of redis-py, and health from INFO and CONFIG GET. Pure."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redis import exceptions as driver

from aggregator.store.base import StoreInfo
from aggregator.store.disk import DiskSpace, rewrite_message
from aggregator.store.server_process import SOCKET_NAME

# These mean that the store cannot serve.
DRIVER_ERRORS: Final = (driver.RedisError, driver.RedisClusterException, OSError)
# After these the slot map of a cluster may be out of date.
TOPOLOGY_ERRORS: Final = (
    driver.ConnectionError,
    driver.TimeoutError,
    driver.ClusterDownError,
    driver.MovedError,
    driver.SlotNotCoveredError,
)
# Waiting does not resolve these: the configuration must change.
AUTH_ERRORS: Final = (
    driver.AuthenticationError,
    driver.AuthorizationError,
    driver.AuthenticationWrongNumberOfArgsError,
    driver.NoPermissionError,
)
# Of redis-py when redis+cluster:// points to a plain server; its type is generic.
NOT_A_CLUSTER_MESSAGE: Final = "Cluster mode is not enabled"
# Of a RuntimeError of uvloop when a connection ended between its opening and the first write.
_TRANSPORT_CLOSED_MESSAGE: Final = "the handler is closed"
_BAD_CERTIFICATE_MESSAGE: Final = "CERTIFICATE_VERIFY_FAILED"
MIN_MAJOR_VERSION: Final = 7

# Sentence for each error type of redis-py, most specific first. ``{at}`` is the server's address.
_MESSAGES_BY_TYPE: Final[tuple[tuple[tuple[type[Exception], ...], str], ...]] = (
    ((driver.BusyLoadingError,), "The store at {at} is still loading its data; try again in a moment."),
    (
        (driver.NoPermissionError,),
        "The store at {at} does not permit this user a command or key that is needed; change its ACL.",
    ),
    (
        AUTH_ERRORS,
        "The store at {at} rejects this user name or password; correct store_url or the user's permissions.",
    ),
    ((driver.MaxConnectionsError,), "All connections to the store at {at} are busy; try again in a moment."),
    (
        (driver.TimeoutError, TimeoutError),
        "The store at {at} did not answer in time; a write in progress may have been applied.",
    ),
    ((driver.ReadOnlyError,), "The store at {at} is read-only (a replica); point store_url to the primary."),
    ((driver.OutOfMemoryError,), "The store at {at} is full; {more_memory}, then shorten the retention."),
    (
        (driver.ClusterError, driver.SlotNotCoveredError, driver.AskError),  # the last: of slots that move
        "The cluster at {at} has no primary for some hash slots; wait for its failover or repair it.",
    ),
    ((driver.NoScriptError,), "The store at {at} lost its cached scripts; try again."),
    ((socket.gaierror,), "The name of the store at {at} cannot be resolved; check DNS, and store_url."),
    (
        (driver.ConnectionError, driver.RedisClusterException, OSError, RuntimeError),
        "The store at {at} cannot be reached or dropped the connection; {remedy}.",
    ),
)

# Sentence for untyped error replies, by their first word.
_MESSAGES_BY_PREFIX: Final = {
    "MISCONF": (
        "The store at {at} cannot write to its disk and rejects writes ({reply}); free space on its disk, or "
        "repair it."
    ),
    "NOREPLICAS": (
        "The store at {at} rejects writes without its replicas (min-replicas-to-write); restore them."
    ),
}


def is_store_failure(error: BaseException) -> bool:
    """Whether the error means that the store cannot serve; any other error is a bug of this package."""
    closed = isinstance(error, RuntimeError) and _TRANSPORT_CLOSED_MESSAGE in str(error)
    return closed or isinstance(error, DRIVER_ERRORS)


def refuses_writes(error: BaseException) -> bool:
    """Whether a server that runs refused a write, for want of disk space or replicas."""
    return isinstance(error, driver.ResponseError) and str(error).startswith(("MISCONF", "NOREPLICAS"))


def describe(error: BaseException, address: str) -> str:
    """One sentence: what happened and what to do; it quotes only error replies of the server."""
    if isinstance(error, driver.ConnectionError) and isinstance(error.__cause__, TimeoutError):
        return f"All connections to the store at {address} are busy; try again in a moment."
    if NOT_A_CLUSTER_MESSAGE in str(error):
        return f"The store at {address} is not a cluster node; write redis:// instead of redis+cluster://."
    if _BAD_CERTIFICATE_MESSAGE in str(error):
        reason = first_line(error).partition("certificate verify failed: ")[2].partition(" (_ssl")[0]
        return (
            f"The certificate of the store at {address} is not trusted ({reason.rstrip('.')}); renew it if "
            "it has expired, or add ?ssl_ca_certs=FILE to store_url with the authority that signed it, "
            "and use the host name it was issued for."
        )
    if isinstance(error, driver.TimeoutError) and "connecting to server" in str(error):
        return (
            f"The store at {address} did not accept a connection in time; check that it is running, and "
            "that it uses TLS if store_url is rediss://."
        )
    below = (error.__cause__, error.__context__)
    error = next((each for each in below if isinstance(each, socket.gaierror)), error)
    for kinds, text in _MESSAGES_BY_TYPE:
        if isinstance(error, kinds):
            remedy = "check that it is running, and whether it requires TLS (rediss://)"
            if address.startswith("/"):
                remedy = "an embedded one is restarted by its service within seconds; start any other"
            return text.format(at=address, remedy=remedy, more_memory=_more_memory(address))
    reply = first_line(error).partition(". ")[0]
    text = _MESSAGES_BY_PREFIX.get(reply.partition(" ")[0], "The store at {at} rejected a command: {reply}.")
    return text.format(at=address, reply=reply)


def _more_memory(address: str) -> str:
    if address.endswith(f"/{SOCKET_NAME}"):  # its maxmemory is a part of what its machine or container has
        return "give its machine or container more memory, or move to an external store (store_url)"
    return "raise its maxmemory"


def is_configuration_error(error: BaseException | None) -> bool:
    """Whether waiting does not resolve the error: store_url must be corrected."""
    known = NOT_A_CLUSTER_MESSAGE, _BAD_CERTIFICATE_MESSAGE, "DB index is out of range"
    return isinstance(error, AUTH_ERRORS) or any(message in str(error) for message in known)


def root_cause(error: BaseException) -> BaseException:
    """The original error: over unix sockets redis-py wraps error replies in a ConnectionError."""
    while isinstance(error, driver.ConnectionError) and isinstance(error.__cause__, driver.RedisError):
        error = error.__cause__
    return error


def first_line(error: BaseException | None) -> str:
    """First line of an error's message, at most 200 characters, without a final period."""
    return (str(error).splitlines() or [""])[0][:200].rstrip(".")


@dataclass(frozen=True, slots=True)
class Node:
    """One server: its address, its INFO (for a cluster node also its CLUSTER INFO), and its CONFIG.

    ``config`` is {} if the server forbids CONFIG GET. ``disk``: that of its data, if it is on this machine.
    """

    address: str
    info: Mapping[str, Any]
    config: Mapping[str, str]
    disk: DiskSpace | None = None


def describe_version(node: Node) -> str:
    """Name and version, as in ``Valkey 9.1.2`` or ``Redis 7.0.15``."""
    if "valkey_version" in node.info:
        return f"Valkey {node.info['valkey_version']}"
    return f"Redis {node.info.get('redis_version', 'of unknown version')}"


def describe_durability(node: Node) -> str:
    """Which writes survive a restart, a crash and a power loss, in plain words."""
    if not int(node.info.get("aof_enabled", 0)):
        if node.config.get("save") == "":
            return "none: a restart of the server loses everything (appendonly no, save off)"
        return "snapshots only: a crash of the server loses all writes since the last one (appendonly no)"
    return {
        "always": "every write is on disk before it is acknowledged (appendfsync always)",
        "everysec": "survives a crash of the server; a power loss may lose up to 2 s (appendfsync everysec)",
        "no": "survives a crash of the server; a power loss may lose 30 s or more (appendfsync no)",
    }.get(
        node.config.get("appendfsync", ""),
        "survives a crash of the server; the loss on a power failure is not known (CONFIG GET is forbidden)",
    )


def find_problem(node: Node) -> str | None:  # noqa: PLR0911  a list of conditions, one sentence each
    """Why this server cannot accept writes now, as one sentence; None if it can."""
    info = node.info
    if int(info.get("loading", 0)):
        percent = info.get("loading_loaded_perc", "?")
        return f"The store at {node.address} is still loading its data ({percent}%); wait."
    if info.get("role") not in (None, "master"):
        return f"The store at {node.address} is a read-only replica; point store_url to the primary."
    replicas = info.get("min_slaves_good_slaves")
    required = int(node.config.get("min-replicas-to-write", 1))  # at least 1 where ``replicas`` is reported
    lacks_replicas = replicas is not None and int(replicas) < required
    if (cannot_append(node) or lacks_replicas) and node.disk is not None and not node.disk.has_recovered:
        return node.disk.full_message
    if cannot_append(node):
        return (
            f"The store at {node.address} cannot write its append-only file and rejects writes; "
            "free space on its disk, or repair it."
        )
    needs_snapshots = node.config.get("save") and node.config.get("stop-writes-on-bgsave-error") == "yes"
    if needs_snapshots and info.get("rdb_last_bgsave_status", "ok") != "ok":
        return (
            f"The store at {node.address} could not write its last snapshot and rejects writes until it can; "
            "check its disk and memory."
        )
    if lacks_replicas:
        return (
            f"The store at {node.address} has {replicas} connected replicas and rejects writes with fewer "
            f"than {required} (min-replicas-to-write); restore them."
        )
    if info.get("cluster_state", "ok") != "ok":
        return describe(driver.ClusterError(), node.address)
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        return (
            f"The store at {node.address} now has maxmemory-policy {policy}, which silently evicts articles; "
            "run CONFIG SET maxmemory-policy noeviction."
        )
    used, limit = memory_of(node)
    if limit and used >= 0.995 * limit:  # buffers of refused writes were freed
        return describe(driver.OutOfMemoryError(), node.address)
    return None


def memory_of(node: Node) -> tuple[int, int]:
    """Memory that the server uses, and its maxmemory, in bytes; 0: no limit."""
    return int(node.info.get("used_memory", 0)), int(node.info.get("maxmemory", 0))


def cannot_append(node: Node) -> bool:
    """Whether the last write to the append-only file failed; writes are rejected until one succeeds."""
    return bool(node.info.get("aof_last_write_status", "ok") != "ok")


def find_warning(node: Node) -> str | None:
    """What this server cannot do now or soon although it accepts writes, as one sentence."""
    used, limit = memory_of(node)
    if used > 0.8 * limit > 0:
        return (
            f"The store at {node.address} uses over 80 % of its maxmemory ({limit / 1e6:,.1f} MB): "
            f"{_more_memory(node.address)}, or shorten the retention."
        )
    log_bytes = int(node.info.get("aof_current_size", 0))
    rewrite_is_off = node.config.get("auto-aof-rewrite-percentage") == "0"
    if rewrite_is_off and node.disk is not None and not node.disk.fits_copy(log_bytes):
        return rewrite_message(node.disk, log_bytes)
    if node.info.get("aof_last_bgrewrite_status", "ok") != "ok":
        return (
            f"The store at {node.address} could not rewrite its append-only file, which keeps growing; "
            "free as much disk space as the file is large, or see the log of the server."
        )
    return None


def find_configuration_errors(node: Node, *, cluster: bool) -> list[str]:
    """Why this server is unfit for use, one sentence per reason; empty if it is fit."""
    found = []
    major = str(node.info.get("redis_version", "0")).split(".")[0]
    if not major.isdigit() or int(major) < MIN_MAJOR_VERSION:
        found.append(
            f"store_url: {node.address} runs {describe_version(node)}; Redis >= 7 or Valkey is needed."
        )
    policy = node.info.get("maxmemory_policy") or node.config.get("maxmemory-policy")
    if policy != "noeviction":
        found.append(
            f"store_url: {node.address} has maxmemory-policy {policy or 'unknown'}, which silently evicts "
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


def summarize(nodes: Sequence[Node], kind: str) -> StoreInfo:
    """The StoreInfo of all ``nodes`` (at least one)."""
    problem = next(filter(None, map(find_problem, nodes)), None)
    used, limits = zip(*map(memory_of, nodes), strict=True)
    return StoreInfo(
        kind=kind,
        version=", ".join(sorted({describe_version(node) for node in nodes})),
        memory_bytes=sum(used),
        durability="; ".join(sorted({describe_durability(node) for node in nodes})),
        ready=problem is None,
        problem=problem,
        warning=next(filter(None, map(find_warning, nodes)), None),
        limit_bytes=sum(limits) if all(limits) else 0,
    )
