"""Opens the store that the settings name; an embedded server runs as long as its context is open."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

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

    ``on_restart`` is called after each restart of the embedded store.
    """
    if settings.store_url:
        yield settings
        return
    async with AsyncExitStack() as stack:
        server = EmbeddedServer(Path(settings.data_dir), appendfsync=settings.appendfsync)
        stack.enter_context(server)
        watchdog = Watchdog(server, on_restart)
        await asyncio.to_thread(watchdog.check_disk)
        stack.callback(asyncio.create_task(watchdog.run()).cancel)
        yield dataclasses.replace(settings, store_url=server.url)


@asynccontextmanager
async def open_store(settings: Settings, check_format: FormatCheck) -> AsyncIterator[Store]:
    """Open and check the store that the settings name; ``check_format`` verifies the format of its data."""
    # Imported here: the supervisor process only calls ``with_store_url`` and needs no client.
    from aggregator.store.memory import MemoryStore
    from aggregator.store.redis import open_redis_store

    if settings.in_memory:
        yield MemoryStore()
        return
    async with AsyncExitStack() as stack:
        located = await stack.enter_async_context(with_store_url(settings))
        store = open_redis_store(located.store_url)
        stack.push_async_callback(store.close)
        await store.check()
        await check_format(store)
        yield store
