"""Store errors: each driver error becomes one sentence with a remedy, and bugs stay bugs."""

from __future__ import annotations

import re

import pytest
from redis import exceptions as driver

from aggregator.store.errors import (
    DRIVER_ERRORS,
    NOT_A_CLUSTER_MESSAGE,
    describe,
    first_line,
    is_configuration_error,
    is_store_failure,
    root_cause,
)

ADDRESS = "store.example:6379"
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
        (driver.NoPermissionError("no permissions"), "rejects this user name or password"),
        (driver.MaxConnectionsError("too many"), "connections to the store at .* are busy"),
        (caused_by(driver.ConnectionError("none free"), TimeoutError()), "All connections .* are busy"),
        (driver.TimeoutError("Timeout reading"), "did not answer in time"),
        (driver.TimeoutError("Timeout connecting to server"), "did not accept a connection in time"),
        (driver.ReadOnlyError("a replica"), "is read-only"),
        (driver.OutOfMemoryError("maxmemory"), "is full"),
        (driver.ClusterDownError("CLUSTERDOWN"), "no primary for some hash slots"),
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
