"""Embedded store of a running service: owner of its lock, and URL for other processes."""

from __future__ import annotations

import dataclasses
import fcntl
from pathlib import Path
from urllib.parse import quote

from aggregator.errors import ConfigurationError
from aggregator.settings import Settings


def lock_holder(directory: Path) -> str | None:
    """Id of the process that has the embedded store open; None if none has. Raises OSError."""
    with open(directory / "lock", encoding="utf-8", errors="replace") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return lock.read().strip() or "unknown"
    return None


def with_running_store_url(settings: Settings) -> Settings:
    """Settings with the socket of the embedded store that a running service has open; else unchanged.

    Raises ConfigurationError when the directory of the store cannot be read.
    """
    directory = Path(settings.data_dir)
    try:
        if settings.store_url or lock_holder(directory) is None:
            return settings
        socket = (directory / "server.lock").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):  # no store yet
        return settings
    except OSError as error:
        raise ConfigurationError(f"data_dir: {unreadable_message(directory, error)}") from None
    return dataclasses.replace(settings, store_url="unix://" + quote(socket))


def unreadable_message(directory: Path, error: OSError) -> str:
    """One sentence for a directory that cannot be read."""
    return f"{directory} cannot be read ({error.strerror}); run this as the user that runs the service."
