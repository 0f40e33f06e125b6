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

from aggregator.concurrency.process_priority import step_back
from aggregator.domain import Layout
from aggregator.errors import AggregatorError
from aggregator.http.metrics.multiprocess import Siblings
from aggregator.runtime import logging as logs
from aggregator.runtime.child_process import Child, first
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import exit_code
from aggregator.settings import Settings

# It ends while requests are let out: the detector's last tick and what runs beside it (``jobs.DRAIN_S`` each), and a little.
END_S = 6.0
# Between two attempts to start it: at first, and twice as long each time that it does not get ready.
PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
# Articles come first, and a batch waits for its analyses (``analysis_forks.NICE``, 5): behind those, but so little that it keeps
# up with a load that fills all processors. With 10 it falls behind where others keep them busy.
NICE = 7

log = logging.getLogger("aggregator.scheduler")


class Scheduler:
    """The process as its parent sees it: one after the other, until told to stop."""

    def __init__(self, settings: Settings, siblings: Siblings) -> None:
        self._settings, self._siblings = settings, siblings
        self._renew = asyncio.Event()
        self._layout: Layout | None = None

    def renew(self, layout: Layout) -> None:
        """Start it anew, for these spaces."""
        self._layout = layout
        self._renew.set()

    async def keep(self, layout: Layout, stop: asyncio.Event) -> None:
        """Keep one alive; returns when ``stop`` is set and it has ended."""
        self._layout = layout
        pause_s = PAUSE_S
        while not stop.is_set():
            self._renew.clear()
            ended, was_ready = await self._one(stop)
            if not ended:
                continue
            pause_s = PAUSE_S if was_ready else min(2 * pause_s, LONGEST_PAUSE_S)
            log.error("the scheduler %s; starting another one in %g s", ended, pause_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await stop.wait()

    async def _one(self, stop: asyncio.Event) -> tuple[str, bool]:
        """One process: why it ended when nobody wanted that, and whether it had begun to work."""
        try:
            child = Child(
                "aggregator-scheduler", work, self._settings, self._layout, self._siblings.directory
            )
        except OSError as error:
            return f"cannot be started ({error.strerror or error})", False
        try:
            await first(child.ended, child.hung, self._renew, stop)
            unwanted = (child.ended.is_set() or child.hung.is_set()) and not stop.is_set()
        finally:
            await child.end(END_S)
        return child.fate() if unwanted else "", child.ready.is_set()


# -- in the other process ----------------------------------------------------------------------


def work(settings: Settings, layout: Layout, directory: Path, pipe: Connection) -> None:
    """The scheduled work until SIGTERM, or until the parent is gone."""
    for number in (signal.SIGINT, signal.SIGHUP):  # for the parent, though a terminal tells all of us
        signal.signal(number, signal.SIG_IGN)
    logs.configure(settings.log_level, settings.log_format, with_process=True)
    step_back(NICE)
    from aggregator.runtime.background_services import until_stopped

    try:
        run_loop(until_stopped(settings, layout, directory, pipe))
    except AggregatorError as error:
        log.error("%s", error)
        raise SystemExit(exit_code(error)) from None
