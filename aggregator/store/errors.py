"""Translation of redis-py errors into sentences: what happened, where, what to do."""

from __future__ import annotations

from typing import Final

from redis import exceptions as driver

DRIVER_ERRORS: Final = (driver.RedisError, driver.RedisClusterException, OSError)
"""Errors of redis-py that mean that the store cannot serve."""

TOPOLOGY_ERRORS: Final = (
    driver.ConnectionError,
    driver.TimeoutError,
    driver.ClusterDownError,
    driver.MovedError,
    driver.SlotNotCoveredError,
)
"""After these errors the slot map of a cluster may be out of date."""

AUTH_ERRORS: Final = (
    driver.AuthenticationError,
    driver.AuthorizationError,
    driver.AuthenticationWrongNumberOfArgsError,
    driver.NoPermissionError,
)
"""Errors that waiting does not resolve: the configuration must change."""

NOT_A_CLUSTER_MESSAGE: Final = "Cluster mode is not enabled"
"""Message of redis-py when redis+cluster:// points to a plain server; its type is generic."""

_TRANSPORT_CLOSED_MESSAGE: Final = "the handler is closed"
"""Message of a RuntimeError of uvloop when a connection ended between its opening and the first write."""

_BAD_CERTIFICATE_MESSAGE: Final = "CERTIFICATE_VERIFY_FAILED"
_CONNECT_TIMEOUT_MESSAGE: Final = "connecting to server"

# Sentence for each error type of redis-py, most specific first. ``{at}`` is the server's address.
_MESSAGES_BY_TYPE: Final[tuple[tuple[tuple[type[Exception], ...], str], ...]] = (
    ((driver.BusyLoadingError,), "The store at {at} is still loading its data; try again in a moment."),
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
    (
        (driver.OutOfMemoryError,),
        "The store at {at} is full; raise its maxmemory or shorten the retention.",
    ),
    (
        (driver.ClusterDownError, driver.MasterDownError, driver.SlotNotCoveredError, driver.ClusterError),
        "The cluster at {at} has no primary for some hash slots; wait for its failover or repair it.",
    ),
    ((driver.NoScriptError,), "The store at {at} lost its cached scripts; try again."),
    (
        (driver.ConnectionError, driver.RedisClusterException, OSError, RuntimeError),
        "The store at {at} cannot be reached or dropped the connection; check that it is running, "
        "and whether it requires TLS (rediss://).",
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
            f"The certificate of the store at {address} is not trusted ({reason.rstrip('.')}); add "
            "?ssl_ca_certs=FILE to store_url with the certificate authority that signed it, and use the "
            "host name it was issued for."
        )
    if isinstance(error, driver.TimeoutError) and _CONNECT_TIMEOUT_MESSAGE in str(error):
        return (
            f"The store at {address} did not accept a connection in time; check that it is running, and "
            "that it uses TLS if store_url is rediss://."
        )
    for kinds, text in _MESSAGES_BY_TYPE:
        if isinstance(error, kinds):
            return text.format(at=address)
    reply = first_line(error).partition(". ")[0]
    text = _MESSAGES_BY_PREFIX.get(reply.partition(" ")[0], "The store at {at} rejected a command: {reply}.")
    return text.format(at=address, reply=reply)


def is_configuration_error(error: BaseException | None) -> bool:
    """Whether waiting does not resolve the error: store_url must be corrected."""
    text = str(error)
    return isinstance(error, AUTH_ERRORS) or NOT_A_CLUSTER_MESSAGE in text or _BAD_CERTIFICATE_MESSAGE in text


def root_cause(error: BaseException) -> BaseException:
    """The original error: over unix sockets redis-py wraps error replies in a ConnectionError."""
    while isinstance(error, driver.ConnectionError) and isinstance(error.__cause__, driver.RedisError):
        error = error.__cause__
    return error


def first_line(error: BaseException | None) -> str:
    """First line of an error's message, at most 200 characters, without a final period."""
    return (str(error).splitlines() or [""])[0][:200].rstrip(".")
