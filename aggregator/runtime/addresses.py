"""What people are told: URLs, commands, the store, an address that cannot be bound, and how to go on."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import http.client
import json
import logging
import os
import re
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from aggregator.errors import AggregatorError, ConfigurationError
from aggregator.settings import Settings
from aggregator.store.factory import checked_store, with_running_store_url

DEMO_INTERVAL_S = 0.2
ANSWER_TIMEOUT_S = 5.0
PORT_ATTEMPTS, PORT_INTERVAL_S = 50, 0.1  # processes of a killed service end within some seconds
_STORE_OPTIONS = ("--config", "--store", "--data-dir")
_MODEL_OPTIONS = (*_STORE_OPTIONS, "--models-dir", "--migration-models-dir")
_SERVICE_OPTIONS = (*_MODEL_OPTIONS, "--host", "--port")
# Options that a hint repeats, where these are not those of the store. A demonstration gets its own.
_SHARED = {"serve --demo": ("--host", "--port"), "serve": _SERVICE_OPTIONS, "doctor": _SERVICE_OPTIONS}
_SHARED |= {"audit": _MODEL_OPTIONS, "migrate": _MODEL_OPTIONS, "ingest": ("--config", "--server")}
_COMMAND = re.compile(r"`aggregator ((?:audit|backup|doctor|ingest|keys|migrate|restore|serve)\b[^`]*)`")

log = logging.getLogger("aggregator.serve")


def service_url(host: str, port: int) -> str:
    """URL of the service for a browser on this machine; a wildcard host becomes the loopback address."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown and not shown.startswith('[') else shown}:{port}"


def command(subcommand: str, settings: Settings) -> str:
    """A command in backquotes, as a shell here finds it, with the options of this one that it must share."""
    name, started_as = subcommand.split(maxsplit=1)[0], Path(sys.argv[0])
    is_on_path = shutil.which("aggregator") is not None or started_as.name != "aggregator"
    words = ["aggregator" if is_on_path else os.path.relpath(started_as), subcommand]
    given = {"--server": service_url(settings.host, settings.port)}
    if "--config" not in sys.argv and settings.data_dir != Settings().data_dir and not settings.store_url:
        given["--data-dir"] = settings.data_dir
    for word, following in pairwise((*sys.argv[1:], "")):
        option, equals, value = word.partition("=")
        given["--store" if option == "--store-url" else option] = value if equals else following
    if "--port" in given or ("--config" not in given and settings.port != Settings().port):
        given["--port"] = str(settings.port)
    for option in _SHARED.get(subcommand, _SHARED.get(name, _STORE_OPTIONS)):
        if option in given:
            words.append(f"{option} {shlex.quote(redact_url(given[option]))}")
    return f"`{' '.join(words)}`"


def with_options(text: str, settings: Settings) -> str:
    """A message whose commands name the store of these settings, too."""
    return _COMMAND.sub(lambda found: command(found[1], settings), text)


def say(settings: Settings, text: str, level: int = logging.INFO) -> None:
    """Print a line for the operator on standard output; with ``log_format`` json, log it."""
    if settings.log_format == "json":
        log.log(level, "%s", text)
    else:
        print(f"aggregator: {text}", flush=True)


def describe_store(settings: Settings) -> str:
    """The store, without its password."""
    if settings.in_memory:
        return "memory; all data is lost at exit"
    if settings.store_url:
        return redact_url(settings.store_url)
    return f"embedded Valkey in {Path(settings.data_dir).absolute()} (appendfsync {settings.appendfsync})"


def redact_url(url: str) -> str:
    """``redis://user:secret@host?password=secret&prefix=a:`` -> ``redis://NAME:PASSWORD@host?prefix=a:``.

    Where a "?" may start the query or be part of a password, nothing after the scheme is shown.
    """
    scheme, separator, rest = url.partition("://")
    before_query, _, query = rest.partition("?")
    if "@" in query and "@" not in before_query and "/" not in before_query:
        return f"{scheme}{separator}(hidden)"
    prefix = re.search(r"(?:^|&)(prefix=[\w.:-]*)(?:&|$)", query)
    _, at, place = before_query.rpartition("@")
    return f"{scheme}{separator}{at and 'NAME:PASSWORD@'}{place}{f'?{prefix[1]}' if prefix else ''}"


def bind_error(settings: Settings, error: OSError) -> ConfigurationError:
    """The error for a socket that could not be bound: port in use, or not an address of this machine."""
    address = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return ConfigurationError(
            f"port: {address} is in use by another process; stop it or choose another --port."
        )
    return ConfigurationError(f"host: cannot listen on {address} ({error.strerror or error}).")


@contextlib.contextmanager
def bound_socket(settings: Settings) -> Iterator[socket.socket]:
    """The socket of all processes that serve, of IPv4 if a name has both. Raises ConfigurationError.

    Connections are refused until one of them is ready and listens. "::" is every address, also of IPv4.
    """
    with contextlib.ExitStack() as opened:
        try:
            found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
            family, *_, address = min(found)
            listener = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            _bind(listener, address, settings)
        except OSError as error:
            raise bind_error(settings, error) from error
        yield listener


def _bind(listener: socket.socket, address: tuple[object, ...], settings: Settings) -> None:
    """Bind, and wait for a port that the last processes of a killed service still listen on."""
    for attempt in range(PORT_ATTEMPTS + 1):
        try:
            listener.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or attempt == PORT_ATTEMPTS:
                raise
        else:
            return
        if not attempt:
            say(settings, f"port {settings.port} is in use; waiting for some seconds until it is free")
        time.sleep(PORT_INTERVAL_S)


async def announce(settings: Settings, port: int) -> None:
    """Print the URL and why the service is not ready; with ``settings.demo``, replay the demonstration."""
    url, problem = service_url(settings.host, port), ""
    with contextlib.suppress(OSError, http.client.HTTPException):  # nothing answers in time; the log says why
        status, body = await asyncio.to_thread(get, f"{url}/readyz")
        problem = "" if status == HTTPStatus.OK else json.loads(body)["detail"]
    state, level = ("not ready", logging.WARNING) if problem else ("ready", logging.INFO)
    say(settings, f"{state} on {url}", level)
    if problem:  # a line of its own: programs read the address at the end of the first
        say(settings, f"why: {problem}", level)
    say(settings, f"next: {next_step(dataclasses.replace(settings, port=port), url, state)}")
    if settings.demo:
        await run_demo(url, settings.key or settings.bootstrap_key)


def next_step(settings: Settings, url: str, state: str) -> str:
    """What a newcomer should do now, in one line."""
    doctor, page = command("doctor", settings), f"{settings.public_url.rstrip('/') or url}/"
    if state != "ready":
        return f"{doctor} names what is wrong"
    if settings.demo:
        return f"open {page} in a browser; news arrives for some seconds"
    return f"open {page}, which shows how to send the first article; {doctor} checks the rest"


def get(url: str, timeout_s: float = ANSWER_TIMEOUT_S) -> tuple[int, bytes]:
    """Status and body of a GET without a key. Raises OSError, TimeoutError included, and HTTPException."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    with contextlib.closing(connection):
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        return answer.status, answer.read()


async def other_store(settings: Settings) -> str:
    """One sentence if the service of these settings uses another store than they name; "": not known to."""
    from aggregator.index.upkeep import format_version  # imports numpy
    from aggregator.store.identity import identities_of

    url, own = service_url(settings.host, settings.port), ["memory"] if settings.in_memory else []
    try:
        identity = json.loads(get(f"{url}/healthz")[1])["store"]
        located = with_running_store_url(settings)
        if located.store_url and not settings.in_memory:
            async with checked_store(located.store_url, format_version.check) as store:
                own = await identities_of(store)
            identity = identity or own[0]  # of a new store
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, AggregatorError):
        return ""  # no service, another program, or a store that the command itself reports
    if identity in own:
        return ""
    remedy = "give this command the --config, --store or --data-dir of that service, or its variables"
    used = f"the store that the service on {url} uses (id {identity or 'of a new store'})"
    return f"{describe_store(settings)} is not {used}: {remedy}; it prints its store when it starts."


async def run_demo(url: str, key: str = "") -> None:
    """Send what is not stored of the demonstration and print a report; a failure is only logged."""
    from aggregator.runtime.demo import article_body, load_rows
    from aggregator_client import demonstration

    try:
        now = datetime.now(UTC)
        articles = [article_body(row, now) for row in load_rows()]
        report = await demonstration.replay(url, articles, pause_s=DEMO_INTERVAL_S, key=key)
    except Exception:
        log.exception("the demonstration failed; the service continues")
        return
    print(report.format_text(url), flush=True)
