"""Background process: event detector, index maintenance and webhooks, supervised by its parent.

A single web process, or the supervisor of several, runs one, so that a bulk load has the processor of the web
processes to itself. It needs no models and has a lower priority. When it dies or hangs it is started again:
its state is in the store, and requests are not affected. The first one of a single web process is forked
from it and shares its libraries and dictionaries; later ones are spawned. With a memory store, which only
one process can use, the web process does this work itself.

This module is the parent's side and the entry point; ``background_main`` runs in the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from aggregator.concurrency.scheduling import lower_priority
from aggregator.domain import IndexLayout
from aggregator.http.metrics.multiprocess import PeerMetrics
from aggregator.http.metrics.restarts import RestartCounts, Supervised
from aggregator.runtime.child_process import ChildProcess, ForkedProcess, run_child, wait_any
from aggregator.runtime.restart_backoff import RestartBackoff
from aggregator.settings import Settings

# Twice ``background.scheduler.STOP_TIMEOUT_S`` (the detector's last run, its extra tasks) and some margin.
STOP_TIMEOUT_S = 6.0
# Below the priority of analysis processes (5), which requests wait for, but little enough to keep up with a
# load that uses all processors. With 10 the detector falls behind when other programs keep them busy.
NICE_INCREMENT = 7
PROCESS_NAME = "aggregator-scheduler"

log = logging.getLogger("aggregator.scheduler")


class BackgroundProcess:
    """Starts the background process, restarts it when it dies or hangs, and stops it.

    ``forked``: what ``fork_background`` returned; the first process is then that one.
    """

    def __init__(
        self,
        settings: Settings,
        peer_metrics: PeerMetrics,
        restarts: RestartCounts,
        forked: ForkedProcess | None = None,
    ) -> None:
        self._settings, self._peer_metrics, self._restarts = settings, peer_metrics, restarts
        self._forked = forked
        self._restart_requested = asyncio.Event()
        self._layout: IndexLayout | None = None

    def restart(self, layout: IndexLayout) -> None:
        """Replace the running process by one for ``layout``."""
        self._layout = layout
        self._restart_requested.set()

    async def supervise(self, layout: IndexLayout, stop: asyncio.Event) -> None:
        """Keep one process running until ``stop`` is set; returns when it has ended."""
        self._layout = layout
        backoff = RestartBackoff()
        while not stop.is_set():
            self._restart_requested.clear()
            failure = await self._run_child(stop, backoff)
            if not failure:
                continue
            pause_s = backoff.next_pause_s()
            log.error("the background process %s; restarting it in %g s", failure, pause_s)
            self._restarts.add(Supervised.BACKGROUND)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await stop.wait()

    async def _run_child(self, stop: asyncio.Event, backoff: RestartBackoff) -> str:
        """Run one process until it ends; returns its failure, "" if it was stopped on request."""
        forked, self._forked = self._forked, None
        try:
            child = ChildProcess(
                PROCESS_NAME,
                child_main,
                self._settings,
                self._layout,
                self._peer_metrics.directory,
                forked=forked,
            )
        except OSError as error:
            return f"cannot be started ({error.strerror or error})"
        try:
            await wait_any(child.ready, child.ended, child.hung, self._restart_requested, stop)
            if child.ready.is_set():
                backoff.on_ready()
            await wait_any(child.ended, child.hung, self._restart_requested, stop)
            failed = (child.ended.is_set() or child.hung.is_set()) and not stop.is_set()
        finally:
            await child.stop(STOP_TIMEOUT_S)
        return child.exit_reason() if failed else ""


def fork_background() -> ForkedProcess | None:
    """Fork the background process, which waits for its settings, from this process; None except on Linux.

    Only before the event loop starts, and after what both processes need is loaded.
    """
    if sys.platform != "linux":
        return None
    return ForkedProcess(PROCESS_NAME, child_main)


def child_main(settings: Settings, layout: IndexLayout, runtime_dir: Path, pipe: Connection) -> None:
    """Entry point of the child: work until SIGTERM, or until the parent is gone."""
    lower_priority(NICE_INCREMENT)

    async def main() -> int:
        # Imported here: a parent that only supervises needs none of the packages of index and detector.
        from aggregator.runtime.background_main import run_background

        return await run_background(settings, layout, runtime_dir, pipe, STOP_TIMEOUT_S)

    run_child(main, settings, log, ignored_signals=(signal.SIGINT, signal.SIGHUP))
