"""The process that does what nobody waits for: event detector, upkeep of the index, webhooks (``scheduled.py``).

``serve`` has one beside the process that answers requests, or beside all of its workers, so that a bulk load has that
process to itself. It needs no models, and steps back where processors are few. When it ends it is started again, and when it hangs it
is ended: all it had is in the store, and requests do not notice. A memory store is one process's alone: there ``serve`` does the work itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from aggregator.concurrency.process_priority import lower_priority
from aggregator.domain import IndexLayout
from aggregator.errors import AggregatorError
from aggregator.http.metrics.multiprocess import PeerMetrics
from aggregator.runtime import logging as logs
from aggregator.runtime.child_process import ChildProcess, wait_any
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import exit_code
from aggregator.settings import Settings

# It ends while requests are let out: the detector's last tick and what runs beside it (``jobs.DRAIN_S`` each), and a little.
STOP_TIMEOUT_S = 6.0
# Between two attempts to start it: at first, and twice as long each time that it does not get ready.
RESTART_DELAY_S, MAX_RESTART_DELAY_S = 1.0, 30.0
# Articles come first, and a batch waits for its analyses (``analysis_forks.NICE``, 5): behind those, but so little that it keeps
# up with a load that fills all processors. With 10 it falls behind where others keep them busy.
NICE_INCREMENT = 7

log = logging.getLogger("aggregator.scheduler")


class BackgroundProcess:
    """The process as its parent sees it: one after the other, until told to stop."""

    def __init__(self, settings: Settings, peer_metrics: PeerMetrics) -> None:
        self._settings, self._peer_metrics = settings, peer_metrics
        self._restart_requested = asyncio.Event()
        self._layout: IndexLayout | None = None

    def restart(self, layout: IndexLayout) -> None:
        """Start it anew, for these spaces."""
        self._layout = layout
        self._restart_requested.set()

    async def supervise(self, layout: IndexLayout, stop: asyncio.Event) -> None:
        """Keep one alive; returns when ``stop`` is set and it has ended."""
        self._layout = layout
        pause_s = RESTART_DELAY_S
        while not stop.is_set():
            self._restart_requested.clear()
            ended, was_ready = await self._run_child(stop)
            if not ended:
                continue
            pause_s = RESTART_DELAY_S if was_ready else min(2 * pause_s, MAX_RESTART_DELAY_S)
            log.error("the scheduler %s; starting another one in %g s", ended, pause_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await stop.wait()

    async def _run_child(self, stop: asyncio.Event) -> tuple[str, bool]:
        """One process: why it ended when nobody wanted that, and whether it had begun to work."""
        try:
            child = ChildProcess(
                "aggregator-scheduler", child_main, self._settings, self._layout, self._peer_metrics.directory
            )
        except OSError as error:
            return f"cannot be started ({error.strerror or error})", False
        try:
            await wait_any(child.ended, child.hung, self._restart_requested, stop)
            unwanted = (child.ended.is_set() or child.hung.is_set()) and not stop.is_set()
        finally:
            await child.stop(STOP_TIMEOUT_S)
        return child.exit_reason() if unwanted else "", child.ready.is_set()


# -- in the other process ----------------------------------------------------------------------


def child_main(settings: Settings, layout: IndexLayout, runtime_dir: Path, pipe: Connection) -> None:
    """The scheduled work until SIGTERM, or until the parent is gone."""
    for number in (signal.SIGINT, signal.SIGHUP):  # for the parent, though a terminal tells all of us
        signal.signal(number, signal.SIG_IGN)
    logs.configure_logging(settings.log_level, settings.log_format, with_process=True)
    lower_priority(NICE_INCREMENT)
    from aggregator.runtime.background_services import run_until_stopped

    try:
        run_loop(run_until_stopped(settings, layout, runtime_dir, pipe))
    except AggregatorError as error:
        log.error("%s", error)
        raise SystemExit(exit_code(error)) from None
