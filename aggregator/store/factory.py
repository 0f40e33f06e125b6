"""Opens the store that the settings name; an embedded server runs as long as its context is open."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aggregator.errors import AggregatorError
from aggregator.log_limits import ChangeFilter
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.store.embedded import EmbeddedServer

RESTART_CHECK_INTERVAL_S = 1.0
# Raises ConfigurationError if the stored data has a format that this version cannot read.
FormatCheck = Callable[[Store], Awaitable[None]]

log = logging.getLogger("aggregator.store")


@asynccontextmanager
async def with_store_url(settings: Settings) -> AsyncIterator[Settings]:
    """The settings with a ``store_url`` that other processes can use; starts the embedded store if unset."""
    if settings.store_url:
        yield settings
        return
    async with AsyncExitStack() as stack:
        server = EmbeddedServer(Path(settings.data_dir), appendfsync=settings.appendfsync)
        stack.enter_context(server)
        stack.callback(asyncio.create_task(_restart_when_dead(server)).cancel)
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


async def _restart_when_dead(server: EmbeddedServer) -> None:
    """Watchdog: restart the embedded server when it has died; until then requests get StoreUnavailable."""
    problems = ChangeFilter()
    while True:
        await asyncio.sleep(RESTART_CHECK_INTERVAL_S)
        try:
            if reason := server.restart_if_dead():
                log.error("the embedded store had ended (%s); it was restarted", reason)
                problems.clear()
        except AggregatorError as error:
            if problems.is_new(str(error)):
                log.error("the embedded store has ended: %s", error)
