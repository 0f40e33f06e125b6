"""How are the addresses of service and store written for people: where it is reached, where articles go, what is in the way?"""

from __future__ import annotations

import errno
from pathlib import Path

from aggregator.errors import ConfigurationError
from aggregator.settings import Settings


def service_url(host: str, port: int) -> str:
    """Where a person on this machine reaches the service."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown and not shown.startswith('[') else shown}:{port}"


def describe_store(settings: Settings) -> str:
    """One line that says where the articles go; never shows a password."""
    if settings.in_memory:
        return "store: memory; everything is forgotten at the end"
    if settings.store_url:
        return f"store: {redact_url(settings.store_url)}"
    place = Path(settings.data_dir).absolute()
    return f"store: embedded Valkey in {place} (appendfsync {settings.appendfsync})"


def redact_url(url: str) -> str:
    """``redis://user:secret@host`` -> ``redis://host``."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2].partition('?')[0]}"


def bind_error(settings: Settings, error: OSError) -> ConfigurationError:
    """The port is taken, or the address is not ours."""
    where = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return ConfigurationError(
            f"port: {where} is in use by another process; stop it or choose another --port."
        )
    return ConfigurationError(f"host: cannot listen on {where} ({error.strerror or error}).")
