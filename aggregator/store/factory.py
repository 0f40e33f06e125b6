"""Opens the store that the settings name, and finds the embedded one of a running service."""

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from aggregator.errors import ConfigurationError
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.watchdog import Watchdog

# Raises ConfigurationError if the stored data has a format that this version cannot read.
FormatCheck = Callable[[Store], Awaitable[None]]


@asynccontextmanager
async def with_store_url(
    settings: Settings, on_restart: Callable[[], None] = lambda: None
) -> AsyncIterator[Settings]:
    """The settings with a ``store_url`` that other processes can use; starts the embedded store if unset.

    It runs while the context is open; ``on_restart`` is called after each of its restarts.
    """
    if settings.store_url:
        yield settings
        return
    with EmbeddedServer(Path(settings.data_dir), appendfsync=settings.appendfsync) as server:
        watchdog = Watchdog(server, on_restart)
        await asyncio.to_thread(watchdog.check_disk)
        watching = asyncio.create_task(watchdog.run())
        try:
            yield dataclasses.replace(settings, store_url=server.url)
        finally:
            watching.cancel()


@asynccontextmanager
async def open_store(settings: Settings, check_format: FormatCheck) -> AsyncIterator[Store]:
    """Open and check the store that the settings name; ``check_format`` verifies the format of its data."""
    # Imported here: the supervisor process only calls ``with_store_url`` and needs no client.
    from aggregator.store.memory import MemoryStore

    if settings.in_memory:
        yield MemoryStore()
        return
    async with with_store_url(settings) as located, checked_store(located.store_url, check_format) as store:
        yield store


@asynccontextmanager
async def checked_store(url: str, check_format: FormatCheck) -> AsyncIterator[Store]:
    """The store at ``url``, if it is fit for use and ``check_format`` accepts the format of its data."""
    from aggregator.store.redis import open_redis_store

    store = open_redis_store(url)
    try:
        await store.check()
        await check_format(store)
        yield store
    finally:
        await store.close()


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
