"""What people are told: URLs, commands, the store, an address that cannot be bound, and how to go on."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import http.client
import logging
import os
import re
import shlex
import shutil
import sys
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from aggregator.errors import ConfigurationError
from aggregator.settings import Settings

DEMO_INTERVAL_S = 0.2
READINESS_TIMEOUT_S = 5.0
_STORE_COMMAND = re.compile(r"`aggregator ((?:audit|doctor|keys|migrate|restore|serve)\b[^`]*)`")

log = logging.getLogger("aggregator.serve")


def service_url(host: str, port: int) -> str:
    """URL of the service for a browser on this machine; a wildcard host becomes the loopback address."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown and not shown.startswith('[') else shown}:{port}"


def command(subcommand: str, settings: Settings) -> str:
    """A command in backquotes, as a shell here finds it, with what chose this store and port.

    Only ``serve`` and ``doctor`` take every setting: others name a store by ``--store``, and no port.
    """
    started_as, given = Path(sys.argv[0]), [] if "--server" in subcommand else sys.argv[1:]
    is_on_path = shutil.which("aggregator") is not None or started_as.name != "aggregator"
    words = ["aggregator" if is_on_path else os.path.relpath(started_as), subcommand]
    takes_all = subcommand.split(maxsplit=1)[0] in ("serve", "doctor")
    store_option = "--store-url" if takes_all else "--store"
    for name in ("--config", "--store-url", "--store"):
        follows = [after for before, after in pairwise(given) if before == name]
        for value in follows + [word.partition("=")[2] for word in given if word.startswith(f"{name}=")]:
            words.append(f"{store_option if 'store' in name else name} {shlex.quote(redact_url(value))}")
    text = " ".join(given)  # a file that it names sets the rest
    chosen = [n for n in ("--data-dir", "--port") if "--config" not in text or n in text]
    if "--data-dir" in chosen and settings.data_dir != Settings().data_dir and not settings.store_url:
        words.append(f"--data-dir {shlex.quote(settings.data_dir)}")
    if takes_all and "--port" in chosen and settings.port != Settings().port:
        words.append(f"--port {settings.port}")
    return f"`{' '.join(words)}`"


def with_options(text: str, settings: Settings) -> str:
    """A message whose commands name the store of these settings, too."""
    return _STORE_COMMAND.sub(lambda found: command(found[1], settings), text)


def say(settings: Settings, text: str) -> None:
    """Print a line for the operator on standard output; with ``log_format`` json, log it."""
    if settings.log_format == "json":
        log.info("%s", text)
    else:
        print(f"aggregator: {text}", flush=True)


def describe_store(settings: Settings) -> str:
    """One line that names the store, without its password."""
    if settings.in_memory:
        return "store: memory; all data is lost at exit"
    if settings.store_url:
        return f"store: {redact_url(settings.store_url)}"
    directory = Path(settings.data_dir).absolute()
    return f"store: embedded Valkey in {directory} (appendfsync {settings.appendfsync})"


def redact_url(url: str) -> str:
    """``redis://user:secret@host?password=secret&prefix=a:`` -> ``redis://host?prefix=a:``.

    Where a "?" may start the query or be part of a password, nothing after the scheme is shown.
    """
    scheme, separator, rest = url.partition("://")
    before_query, _, query = rest.partition("?")
    if "@" in query and "@" not in before_query and "/" not in before_query:
        return f"{scheme}{separator}(hidden)"
    prefix = re.search(r"(?:^|&)(prefix=[\w.:-]*)(?:&|$)", query)
    return f"{scheme}{separator}{before_query.rpartition('@')[2]}{f'?{prefix[1]}' if prefix else ''}"


def bind_error(settings: Settings, error: OSError) -> ConfigurationError:
    """The error for a socket that could not be bound: port in use, or not an address of this machine."""
    address = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return ConfigurationError(
            f"port: {address} is in use by another process; stop it or choose another --port."
        )
    return ConfigurationError(f"host: cannot listen on {address} ({error.strerror or error}).")


async def announce(settings: Settings, port: int) -> None:
    """Print the URL and whether the service is ready; with ``settings.demo``, replay the demonstration."""
    url = service_url(settings.host, port)
    state = "ready" if await asyncio.to_thread(_is_ready, url) else "not ready"
    say(settings, f"{state} on {url}")
    say(settings, f"next: {next_step(dataclasses.replace(settings, port=port), url, state)}")
    if settings.demo:
        await run_demo(url, settings.key or settings.bootstrap_key)


def next_step(settings: Settings, url: str, state: str) -> str:
    """What a newcomer should do now, in one line."""
    doctor = command("doctor", settings)
    if state != "ready":
        return f"{doctor} names what is wrong"
    if settings.demo:
        return f"open {url}/ in a browser; news arrives for some seconds"
    return f"open {url}/, which shows how to send the first article; {doctor} checks the rest"


def _is_ready(url: str) -> bool:
    """Whether ``/readyz`` answers 200; the log says why it does not. True if nothing answers in time."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=READINESS_TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return True
    finally:
        connection.close()


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
