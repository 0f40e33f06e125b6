"""HTTP parts shared by the clients and the command line: URL check, headers, retries with backoff."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp

from aggregator_client.errors import ConfigurationError

JSON_TYPE, NDJSON_TYPE = "application/json", "application/x-ndjson"
SHORTEST_ATTEMPT_S = 0.001

T = TypeVar("T")


def check_http_url(url: str) -> str:
    """``url`` without a slash at the end. Raises ConfigurationError unless it is an http or https URL."""
    with suppress(ValueError):  # such as a port above 65535
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return url.rstrip("/")
    raise ConfigurationError(f"{url!r} is not an http:// or https:// URL.")


def authorization_headers(key: str) -> dict[str, str]:
    """Request headers for an API key, empty without one. Raises ConfigurationError for an impossible key."""
    key = key.strip()  # a key that was read from a file ends with a newline
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError("key: it has a character that no key has.")
    return {"Authorization": f"Bearer {key}"} if key else {}


def key_problem(url: str) -> str:
    """The message when the service at ``url`` answers 401."""
    return (
        f"{url} requires a valid API key: pass one as key=, set AGGREGATOR_KEY for a command or "
        "NEWSDEDUP_KEY for Scrapy; a new key is accepted within two seconds."
    )


def connection_error_reason(error: BaseException) -> str:
    """Why a request failed, in the words of the operating system where it has some ("Connection refused")."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the TLS certificate is not valid ({error.certificate_error})"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return f"TLS failed ({error.os_error.strerror or error.os_error})"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        # Name resolution errors have negative numbers; refusals by several addresses come as one text.
        return os.strerror(number) if number > 0 else error.os_error.strerror or str(error.os_error)
    return str(error) or type(error).__name__


def connection_error_kind(error: BaseException) -> str:
    """The ``kind`` of ``errors.Unavailable`` for a request that failed without an answer."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "name_resolution"
    if isinstance(error, aiohttp.ClientSSLError):
        return "tls"
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = error.os_error.errno == errno.ECONNREFUSED or "Connect call failed" in str(error.os_error)
        return "connection_refused" if refused else "connection_failed"
    return "connection_lost"


def has_too_many_lines(answer: Sequence[bytes]) -> bool:
    """Whether the service ended its answer to a batch because of its limit ``max_batch_lines``.

    ``answer``: the lines of the answer. The lines before the last one are answered.
    """
    return bool(answer) and b"max_batch_lines" in answer[-1] and b'"too_large"' in answer[-1]


async def retry(
    attempt: Callable[[float], Awaitable[T]],
    timeout_s: float,
    *,
    retry_on: type[Exception],
    initial_backoff_s: float,
    max_backoff_s: float,
) -> T:
    """Repeat ``attempt`` while it raises ``retry_on``, with pauses that double; the last error is raised.

    Args:
        attempt: Called with the time left, in seconds.
        timeout_s: No attempt starts later than this.
        retry_on: Errors after which a later attempt may succeed; an attribute ``min_pause_s`` of the
            error is the minimum of the next pause.
        initial_backoff_s: First pause.
        max_backoff_s: Limit of the pauses.
    """
    deadline_s = time.monotonic() + timeout_s
    pause_s = initial_backoff_s
    while True:
        try:
            return await attempt(max(SHORTEST_ATTEMPT_S, deadline_s - time.monotonic()))
        except retry_on as error:
            wait_s = max(pause_s, getattr(error, "min_pause_s", 0.0))
            if time.monotonic() + wait_s > deadline_s:
                raise
        await asyncio.sleep(wait_s)
        pause_s = min(2 * pause_s, max_backoff_s)
