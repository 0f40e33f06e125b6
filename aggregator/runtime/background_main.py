"""Main function of the background process; ``background_process`` starts and supervises it."""

from __future__ import annotations

import asyncio
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from aggregator.analysis.text import tokenizer
from aggregator.background.wiring import BackgroundServices, build_background, build_index
from aggregator.concurrency import TimeSlicer
from aggregator.domain import IndexLayout
from aggregator.http.metrics.collectors import ScrapeContext, store_info
from aggregator.http.metrics.multiprocess import BACKGROUND_PROCESS, PeerMetrics
from aggregator.http.metrics.registry import BackgroundMetrics
from aggregator.index.upkeep import format_version
from aggregator.runtime.event_loop import tune_interpreter
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.runtime.processes import follow_parent, report_ready
from aggregator.settings import Settings
from aggregator.store.base import Store
from aggregator.store.factory import open_store
from aggregator.time_units import wall_clock_ms


async def run_background(
    settings: Settings, layout: IndexLayout, runtime_dir: Path, pipe: Connection, stop_timeout_s: float
) -> int:
    """Run the background services until SIGTERM, or until the parent, at the other end of ``pipe``, is gone.

    It then ends within ``stop_timeout_s``, even if the store hangs. Raises StoreUnavailable at start.
    """
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    follow_parent(pipe, stop, stop_timeout_s)
    async with open_store(settings, format_version.write) as store:
        index = build_index(settings, store, layout)
        services = build_background(settings, index, wall_clock_ms, yield_control=TimeSlicer().yield_control)
        metrics = BackgroundMetrics()
        metrics_server = await PeerMetrics(runtime_dir, BACKGROUND_PROCESS).listen(
            lambda: _exposition(metrics, store, services)
        )
        tokenizer.tokenize("", "en")  # load stemmers and stop words now (0.2 s), not at the first event
        tune_interpreter()
        services.scheduler.start()
        report_ready(pipe, "ready")
        await stop.wait()
        metrics_server.close()
        await services.scheduler.stop()
        await services.close()
    return EXIT_OK


async def _exposition(metrics: BackgroundMetrics, store: Store, background: BackgroundServices) -> bytes:
    return metrics.render(ScrapeContext(await store_info(store), background=background))
