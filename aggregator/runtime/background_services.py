"""What goes on in the process of the scheduled work (``scheduler.py`` is its parent's side)."""

from __future__ import annotations

import asyncio
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from aggregator.analysis.text import tokenizer
from aggregator.background.wiring import Scheduled, index_of, scheduled_of, wall_clock_ms
from aggregator.concurrency.priority_gate import Spells
from aggregator.domain import Layout
from aggregator.http.metrics.collectors import Snapshot, state_of
from aggregator.http.metrics.multiprocess import SCHEDULER, Siblings
from aggregator.http.metrics.registry import ScheduledMetrics
from aggregator.index import format_version
from aggregator.runtime.background_process import END_S
from aggregator.runtime.child_process import show_ready, stop_with_parent
from aggregator.runtime.event_loop import settle_in
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.store.factory import opened_store

READY = "ready"


async def until_stopped(settings: Settings, layout: Layout, directory: Path, pipe: Connection) -> None:
    """Work until SIGTERM, or until the parent, at the other end of ``pipe``, is gone. Raises StoreUnavailable at start."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    stop_with_parent(pipe, stop)
    async with opened_store(settings, format_version.claim) as store:
        index = index_of(settings, store, layout)
        scheduled = scheduled_of(settings, index, wall_clock_ms, give_way=Spells().give_way)
        metrics = ScheduledMetrics()
        told = await Siblings(directory, SCHEDULER).listen(lambda: _exposition(metrics, store, scheduled))
        tokenizer.tokenize(
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
