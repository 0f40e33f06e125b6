"""Settings in, a checked store out; the embedded server runs as long as somebody of its process has it open."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aggregator.errors import AggregatorError
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.store.embedded import EmbeddedServer

RESTART_CHECK_INTERVAL_S = 1.0
# Raises ConfigurationError when the stored data has a format that this version cannot read.
FormatCheck = Callable[[Store], Awaitable[None]]

log = logging.getLogger("aggregator.store")


@asynccontextmanager
async def with_store_url(settings: Settings) -> AsyncIterator[Settings]:
    """The same settings with a ``store_url`` that other processes can use too; the embedded store runs meanwhile."""
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
    """The store that the settings name, after ``check_format``; the embedded one runs as long as it is open."""
    # Whoever only locates it, the parent of workers, need not load what speaks to it.
    from aggregator.store.memory import MemoryStore
    from aggregator.store.redis import open_redis_store

    if settings.in_memory:
        yield MemoryStore()
        return
    async with AsyncExitStack() as stack:
        where = await stack.enter_async_context(with_store_url(settings))
        store = open_redis_store(where.store_url)
        stack.push_async_callback(store.close)
        await store.check()
        await check_format(store)
        yield store


async def _restart_when_dead(server: EmbeddedServer) -> None:
    """Start the embedded server again when it died; requests meanwhile are answered "try again"."""
    told = ""
    while True:
        await asyncio.sleep(RESTART_CHECK_INTERVAL_S)
        try:
            if why := server.restart_if_dead():
                log.error("the embedded store had ended (%s); it was started again", why)
                told = ""
        except AggregatorError as error:
            if str(error) != told:
                log.error("the embedded store has ended: %s", error)
            told = str(error)
