"""What goes on in the process of the scheduled work (``scheduler.py`` is its parent's side)."""

from __future__ import annotations

import asyncio
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from aggregator.analysis.text import tokenizer
from aggregator.background.wiring import BackgroundServices, build_background, build_index, wall_clock_ms
from aggregator.concurrency.priority_gate import TimeSlicer
from aggregator.domain import IndexLayout
from aggregator.http.metrics.collectors import ScrapeContext, store_info
from aggregator.http.metrics.multiprocess import BACKGROUND_PROCESS, PeerMetrics
from aggregator.http.metrics.registry import BackgroundMetrics
from aggregator.index import format_version
from aggregator.runtime.background_process import STOP_TIMEOUT_S
from aggregator.runtime.child_process import report_ready, stop_with_parent
from aggregator.runtime.event_loop import tune_interpreter
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.store.factory import open_store

READY_PAYLOAD = "ready"


async def run_until_stopped(
    settings: Settings, layout: IndexLayout, runtime_dir: Path, pipe: Connection
) -> None:
    """Work until SIGTERM, or until the parent, at the other end of ``pipe``, is gone. Raises StoreUnavailable at start."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    stop_with_parent(pipe, stop)
    async with open_store(settings, format_version.write) as store:
        index = build_index(settings, store, layout)
        scheduled = build_background(settings, index, wall_clock_ms, yield_control=TimeSlicer().yield_control)
        metrics = BackgroundMetrics()
        told = await PeerMetrics(runtime_dir, BACKGROUND_PROCESS).listen(
            lambda: _exposition(metrics, store, scheduled)
        )
        tokenizer.tokenize(
            "", "en"
        )  # stemmers and stop words: they take .2 s to load, and the first event asks for them
        tune_interpreter()
        scheduled.scheduler.start()
        report_ready(pipe, READY_PAYLOAD)
        await stop.wait()
        # Nobody insists where the parent was killed, and a store that hangs would hold us up.
        signal.alarm(round(STOP_TIMEOUT_S))
        told.close()
        await scheduled.scheduler.stop()
        await scheduled.close()


async def _exposition(metrics: BackgroundMetrics, store: Store, background: BackgroundServices) -> bytes:
    return metrics.render(ScrapeContext(await store_info(store), background=background))
