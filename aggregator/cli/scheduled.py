"""What goes on in the process of the scheduled work (``scheduler.py`` is its parent's side)."""

from __future__ import annotations

import asyncio
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from aggregator.cli.children import show_ready, stop_with_parent
from aggregator.cli.loop import settle_in
from aggregator.cli.scheduler import END_S
from aggregator.domain import Layout
from aggregator.http.metrics import ScheduledMetrics
from aggregator.http.siblings import SCHEDULER, Siblings
from aggregator.http.states import Snapshot, state_of
from aggregator.scheduled import Scheduled, index_of, scheduled_of, wall_clock_ms
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.store.opened import opened_store
from aggregator.text import tokens
from aggregator.turns import Spells

READY = "ready"


async def until_stopped(settings: Settings, layout: Layout, directory: Path, pipe: Connection) -> None:
    """Work until SIGTERM, or until the parent, at the other end of ``pipe``, is gone. Raises StoreUnavailable at start."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    stop_with_parent(pipe, stop)
    async with opened_store(settings) as store:
        index = index_of(settings, store, layout)
        scheduled = scheduled_of(settings, index, wall_clock_ms, give_way=Spells().give_way)
        metrics = ScheduledMetrics()
        told = await Siblings(directory, SCHEDULER).listen(lambda: _exposition(metrics, store, scheduled))
        tokens.tokenize(
            "", "en"
        )  # stemmers and stop words: they take .2 s to load, and the first event asks for them
        settle_in()
        scheduled.jobs.start()
        show_ready(pipe, READY)
        await stop.wait()
        # Nobody insists where the parent was killed, and a store that hangs would hold us up.
        signal.alarm(round(END_S))
        told.close()
        await scheduled.jobs.stop()
        await scheduled.close()


async def _exposition(metrics: ScheduledMetrics, store: Store, scheduled: Scheduled) -> bytes:
    return metrics.exposition(Snapshot(await state_of(store), scheduled=scheduled))
