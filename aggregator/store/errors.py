"""The driver's errors in our words: what happened, where, what to do. Used by ``redis.py`` only."""

from __future__ import annotations

from typing import Final

from redis import exceptions as driver

DRIVER_ERRORS: Final = (driver.RedisError, driver.RedisClusterException, OSError)
"""All that the driver itself raises when a store cannot serve."""

TOPOLOGY_ERRORS: Final = (
    driver.ConnectionError,
    driver.TimeoutError,
    driver.ClusterDownError,
    driver.MovedError,
    driver.SlotNotCoveredError,
)
"""After these a cluster may have other primaries than we think."""

AUTH_ERRORS: Final = (
    driver.AuthenticationError,
    driver.AuthorizationError,
    driver.AuthenticationWrongNumberOfArgsError,
    driver.NoPermissionError,
)
"""These will not pass by waiting."""

NOT_A_CLUSTER_MESSAGE: Final = "Cluster mode is not enabled"
"""What the driver says, without a type of its own, when redis+cluster:// meets a plain server."""

_TRANSPORT_CLOSED_MESSAGE: Final = "the handler is closed"
"""What uvloop says, in a RuntimeError, when a connection ended between being opened and being written to."""

_BAD_CERTIFICATE_MESSAGE: Final = "CERTIFICATE_VERIFY_FAILED"
_CONNECT_TIMEOUT_MESSAGE: Final = "connecting to server"

# What each of the driver's errors means, most special first. ``{at}`` is the server's address.
_MESSAGES_BY_TYPE: Final[tuple[tuple[tuple[type[Exception], ...], str], ...]] = (
    ((driver.BusyLoadingError,), "The store at {at} is still loading its data; try again in a moment."),
    (
        AUTH_ERRORS,
        "The store at {at} refuses this user name or password; correct store_url or the user's permissions.",
    ),
    ((driver.MaxConnectionsError,), "All connections to the store at {at} are busy; try again in a moment."),
    (
        (driver.TimeoutError, TimeoutError),
        "The store at {at} did not answer in time; a write that was under way may have happened.",
    ),
    ((driver.ReadOnlyError,), "The store at {at} is read-only (a replica); point store_url to the primary."),
    (
        (driver.OutOfMemoryError,),
        "The store at {at} is full; raise its maxmemory or shorten the retention.",
    ),
    (
        (driver.ClusterDownError, driver.MasterDownError, driver.SlotNotCoveredError, driver.ClusterError),
        "The cluster at {at} has no primary for a part of the keys; wait for its failover or repair it.",
    ),
    ((driver.NoScriptError,), "The store at {at} lost its scripts under way; try again."),
    (
        (driver.ConnectionError, driver.RedisClusterException, OSError, RuntimeError),
        "The store at {at} cannot be reached or dropped the connection; see that it is running, "
        "and whether it wants TLS (rediss://).",
    ),
)


# ... and what answers without a type of their own mean, by their first word.
_MESSAGES_BY_PREFIX: Final = {
    "MISCONF": "The store at {at} cannot write to its disk and takes no writes ({said}); look at its disk and memory.",
    "NOREPLICAS": "The store at {at} takes no writes without its replicas (min-replicas-to-write); bring them back.",
}


def is_store_failure(error: BaseException) -> bool:
    """Whether the store cannot serve; anything else that a call to it raises is a mistake of ours."""
    closed = isinstance(error, RuntimeError) and _TRANSPORT_CLOSED_MESSAGE in str(error)
    return closed or isinstance(error, DRIVER_ERRORS)


def describe(error: BaseException, address: str) -> str:
    """What happened and what to do about it; the driver's own words only for answers of the server."""
    if isinstance(error, driver.ConnectionError) and isinstance(error.__cause__, TimeoutError):
        return f"All connections to the store at {address} are busy; try again in a moment."
    if NOT_A_CLUSTER_MESSAGE in str(error):
        return f"The store at {address} is not a cluster node; write redis:// instead of redis+cluster://."
    if _BAD_CERTIFICATE_MESSAGE in str(error):
        why = first_line(error).partition("certificate verify failed: ")[2].partition(" (_ssl")[0]
        return (
            f"The certificate of the store at {address} is not trusted ({why.rstrip('.')}); write "
            "?ssl_ca_certs=FILE behind store_url, with the authority that signed it, and the host name it is for."
        )
    if isinstance(error, driver.TimeoutError) and _CONNECT_TIMEOUT_MESSAGE in str(error):
        return (
            f"The store at {address} took no connection in time; see that it is running, and that it speaks TLS "
            "when store_url says rediss://."
        )
    for kinds, text in _MESSAGES_BY_TYPE:
        if isinstance(error, kinds):
            return text.format(at=address)
    said = first_line(error).partition(". ")[0]
    by_word = _MESSAGES_BY_PREFIX.get(said.partition(" ")[0], "The store at {at} refused a command: {said}.")
    return by_word.format(at=address, said=said)


def is_configuration_error(error: BaseException | None) -> bool:
    """Whether this will not pass by waiting: what store_url says has to be corrected."""
    said = str(error)
    return isinstance(error, AUTH_ERRORS) or NOT_A_CLUSTER_MESSAGE in said or _BAD_CERTIFICATE_MESSAGE in said


def root_cause(error: BaseException) -> BaseException:
    """The error itself: over unix sockets the driver wraps what the server said into a ConnectionError."""
    while isinstance(error, driver.ConnectionError) and isinstance(error.__cause__, driver.RedisError):
        error = error.__cause__
    return error


def first_line(error: BaseException | None) -> str:
    return (str(error).splitlines() or [""])[0][:200].rstrip(".")
