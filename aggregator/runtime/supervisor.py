"""Supervisor of ``aggregator serve --workers N``: N web processes that share one port and one store.

It serves no requests. It owns the listening socket and the embedded store, starts the workers and one
background process for all of them, and replaces a worker that dies or hangs. A worker that cannot start ends
the service only before any was ready; later connections wait in the backlog, which all workers share.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.domain import IndexLayout
from aggregator.errors import EXIT_UNAVAILABLE, ConfigurationError
from aggregator.http.peer_metrics import SUPERVISOR, PeerMetrics, RestartCounts
from aggregator.runtime.addresses import announce
from aggregator.runtime.background_process import keep_background_running
from aggregator.runtime.event_loop import on_stop_signal
from aggregator.runtime.processes import (
    ChildProcess,
    follow_parent,
    keep_running,
    on_hangup,
    run_child,
    send_to_parent,
)
from aggregator.runtime.web_process import SHUTDOWN_TIMEOUT_S, fork_analysis, run_server
from aggregator.settings import Settings
from aggregator.store.disk import temporary_directory
from aggregator.store.factory import with_store_url

if TYPE_CHECKING:
    from aggregator.app import AnalysisPools

log = logging.getLogger("aggregator.workers")


@contextlib.asynccontextmanager
async def shared_store(
    settings: Settings, runtime_dir: Path
) -> AsyncIterator[tuple[Settings, RestartCounts]]:
    """The settings with the URL of a store that runs, and the counts of restarts that are served."""
    restarts = RestartCounts()
    with contextlib.closing(await PeerMetrics(runtime_dir, SUPERVISOR).listen(restarts.render)):
        async with with_store_url(settings, lambda: restarts.add("store")) as connected:
            yield connected, restarts


async def supervise(settings: Settings, listener: socket.socket) -> int:
    """Run the workers until SIGTERM or SIGINT; the exit code. Raises ConfigurationError, StoreUnavailable."""
    if settings.in_memory:
        raise ConfigurationError(
            "workers: a memory store cannot be shared; use 1 worker or another store_url."
        )
    with temporary_directory() as runtime_dir:
        async with shared_store(settings, runtime_dir) as (connected, restarts):
            return await Supervisor(connected, listener, runtime_dir, restarts).run()


class Supervisor:
    """Keeps ``settings.workers`` web processes on ``listener``; they exchange metrics in ``runtime_dir``."""

    def __init__(
        self, settings: Settings, listener: socket.socket, runtime_dir: Path, restarts: RestartCounts
    ) -> None:
        self._settings, self._listener, self._port = settings, listener, listener.getsockname()[1]
        self._runtime_dir, self._restarts = runtime_dir, restarts
        self._stop = asyncio.Event()
        self._ready_workers: set[int] = set()
        self._background: asyncio.Task[None] | None = None
        self._announcing: asyncio.Task[None] | None = None
        self._exit_code = 0

    async def run(self) -> int:
        """Supervise until a stop signal; the exit code."""
        on_stop_signal(self._begin_shutdown)
        on_hangup(lambda: None)
        await asyncio.gather(*(self._keep_worker(index) for index in range(self._settings.workers)))
        if self._announcing is not None:
            self._announcing.cancel()
        if self._background is not None:
            await self._background
        return self._exit_code

    def _begin_shutdown(self) -> None:
        """Stop accepting: new connections are refused immediately instead of waiting in the backlog."""
        self._stop.set()
        self._listener.close()

    async def _keep_worker(self, index: int) -> None:
        def start() -> ChildProcess:
            name, metrics = f"aggregator-worker-{index}", PeerMetrics(self._runtime_dir, str(index))
            return ChildProcess(name, worker_main, self._settings, self._listener, metrics)

        def on_failure(failure: str, code: int | None) -> bool:
            if self._ready_workers:
                self._restarts.add("worker")
                return False
            if not self._stop.is_set():  # the others fail likewise
                log.error("the service cannot start: worker %d %s", index, failure)
            self._exit_code = code if code is not None and code > 0 else EXIT_UNAVAILABLE
            self._begin_shutdown()
            return True

        await keep_running(
            f"worker {index}", start, self._stop, stop_timeout_s=SHUTDOWN_TIMEOUT_S,
            on_ready=lambda layout: self._on_worker_ready(index, layout), on_failure=on_failure,
        )  # fmt: skip

    def _on_worker_ready(self, index: int, layout: IndexLayout) -> None:
        self._ready_workers.add(index)
        if self._background is None:
            self._background = asyncio.create_task(
                keep_background_running(self._settings, layout, self._runtime_dir, self._restarts, self._stop)
            )
        if self._announcing is None and len(self._ready_workers) == self._settings.workers:
            self._announcing = asyncio.create_task(announce(self._settings, self._port))


def worker_main(
    settings: Settings, listener: socket.socket, peer_metrics: PeerMetrics, pipe: Connection
) -> None:
    """Entry point of a worker: serve until SIGTERM, or until the supervisor is gone."""

    async def serve(pools: AnalysisPools) -> int:
        stop = asyncio.Event()
        follow_parent(pipe, stop, SHUTDOWN_TIMEOUT_S)

        async def on_ready(port: int) -> None:
            send_to_parent(pipe, pools.layout)

        return await run_server(
            settings, pools, listener, on_ready=on_ready, stop=stop, peer_metrics=peer_metrics
        )

    run_child(lambda: serve(fork_analysis(settings)), settings, pipe)
