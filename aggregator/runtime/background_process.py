"""Background process: event detector, index maintenance and webhooks, supervised by its parent.

A single web process, or the supervisor of several, runs one, so that a bulk load has the processor of the web
processes to itself. It needs no models and has a lower priority; its state is in the store, so it may be
started again. With a memory store, which only one process can use, the web process does this work itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from aggregator.concurrency import lower_priority
from aggregator.domain import IndexLayout
from aggregator.errors import EXIT_OK
from aggregator.http.peer_metrics import BACKGROUND_PROCESS, PeerMetrics, RestartCounts
from aggregator.runtime.event_loop import tune_interpreter
from aggregator.runtime.processes import (
    ChildProcess,
    ForkedProcess,
    follow_parent,
    keep_running,
    on_hangup,
    run_child,
    send_to_parent,
)
from aggregator.settings import Settings

# Twice ``background.tasks.STOP_TIMEOUT_S`` (the detector's last run, its extra tasks) and some margin.
STOP_TIMEOUT_S = 6.0
# Below the priority of analysis processes (5), which requests wait for, but little enough to keep up with a
# load that uses all processors. With 10 the detector falls behind when other programs keep them busy.
NICE_INCREMENT = 7
PROCESS_NAME = "aggregator-scheduler"


async def keep_background_running(
    settings: Settings,
    layout: IndexLayout,
    runtime_dir: Path,
    restarts: RestartCounts,
    stop: asyncio.Event,
    forked: ForkedProcess | None = None,
) -> None:
    """Keep one background process running until ``stop`` is set; the first is ``forked``, if given."""

    def start() -> ChildProcess:
        nonlocal forked
        first, forked = forked, None
        return ChildProcess(PROCESS_NAME, child_main, settings, layout, runtime_dir, forked=first)

    await keep_running(
        "the background process", start, stop, stop_timeout_s=STOP_TIMEOUT_S,
        on_failure=lambda failure, code: restarts.add("background"),
    )  # fmt: skip


def fork_background() -> ForkedProcess | None:
    """Fork the background process before the event loop starts; it waits for its settings. Only on Linux."""
    return ForkedProcess(PROCESS_NAME, child_main) if sys.platform == "linux" else None


def child_main(settings: Settings, layout: IndexLayout, runtime_dir: Path, pipe: Connection) -> None:
    """Entry point of the child: work until SIGTERM, or until the parent is gone."""
    lower_priority(NICE_INCREMENT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the whole process group
    run_child(lambda: _run(settings, layout, runtime_dir, pipe), settings, pipe)


async def _run(settings: Settings, layout: IndexLayout, runtime_dir: Path, pipe: Connection) -> int:
    """Run the background work until SIGTERM, or until the parent, at the other end of ``pipe``, is gone.

    It then ends within STOP_TIMEOUT_S, even if the store hangs. Raises StoreUnavailable at start.
    """
    # Imported here: a parent that only supervises needs none of the packages of index and detector.
    from aggregator.analysis.text import tokenizer
    from aggregator.app import open_background, reload_files
    from aggregator.http.metrics import BackgroundMetrics, store_info

    stop, metrics = asyncio.Event(), BackgroundMetrics()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    follow_parent(pipe, stop, STOP_TIMEOUT_S)
    async with open_background(settings, layout) as background:

        async def exposition() -> bytes:
            return metrics.render(await store_info(background.index.store), background=background)

        with contextlib.closing(await PeerMetrics(runtime_dir, BACKGROUND_PROCESS).listen(exposition)):
            tokenizer.tokenize("", "en")  # load stemmers and stop words now (0.2 s), not at the first event
            tune_interpreter()
            background.scheduler.start()
            on_hangup(lambda: reload_files(settings))
            send_to_parent(pipe, "ready")
            await stop.wait()
        await background.scheduler.stop()
    return EXIT_OK
