"""Supervisor of ``aggregator serve --workers N``: N web processes that share one port and one store.

The supervisor serves no requests. It owns the listening socket and the embedded store (without store_url),
starts the workers and one background process for all of them, replaces a worker that dies or hangs, and stops
all of them at SIGTERM or SIGINT. A worker whose supervisor is gone stops too: the pipe between them closes.

A worker that cannot start ends the service only before any worker was ready. After that the supervisor keeps
the socket and the other workers, and tries again with growing pauses (``restart_backoff.py``); while no
worker is left, connections wait in the backlog. A replacement waits for a store that is unavailable.

SIGHUP starts a rolling restart: one worker after another is replaced, and the old one drains and exits only
when the new one serves; the background process is replaced last. All workers accept from one socket, so a
connection in its backlog is not lost with a worker. With one socket per worker (SO_REUSEPORT) the kernel
would already have assigned it to the worker that exits.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import signal
import socket
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.domain import IndexLayout
from aggregator.errors import ConfigurationError
from aggregator.http.metrics.multiprocess import SINGLE_PROCESS, PeerMetrics
from aggregator.http.metrics.restarts import SUPERVISOR, RestartCounts, Supervised
from aggregator.runtime.addresses import bind_error
from aggregator.runtime.background_process import BackgroundProcess
from aggregator.runtime.child_process import (
    ChildProcess,
    report_ready,
    run_child,
    send_heartbeats,
    stop_with_parent,
    wait_any,
)
from aggregator.runtime.event_loop import on_stop_signal, run_loop
from aggregator.runtime.exit_codes import EXIT_UNAVAILABLE
from aggregator.runtime.restart_backoff import RestartBackoff
from aggregator.runtime.startup import announce
from aggregator.runtime.web_process import SHUTDOWN_TIMEOUT_S, fork_analysis, run_server
from aggregator.settings import Settings
from aggregator.store.durable_files import TemporaryDirectory
from aggregator.store.factory import with_store_url

if TYPE_CHECKING:
    from aggregator.app import AnalysisPools, Service

log = logging.getLogger("aggregator.workers")


def supervise(settings: Settings) -> int:
    """Run the workers until SIGTERM or SIGINT. Raises ConfigurationError, StoreUnavailable."""
    if settings.in_memory:
        raise ConfigurationError(
            "workers: a memory store cannot be shared; use 1 worker or another store_url."
        )
    with (
        _bind_socket(settings) as listener,
        TemporaryDirectory() as runtime_dir,
    ):
        shared = dataclasses.replace(settings, port=int(listener.getsockname()[1]))
        return run_loop(_supervise(shared, listener, runtime_dir))


async def _supervise(settings: Settings, listener: socket.socket, runtime_dir: Path) -> int:
    restarts = RestartCounts()
    with contextlib.closing(await PeerMetrics(runtime_dir, SUPERVISOR).listen(restarts.render)):
        async with with_store_url(settings, lambda: restarts.add(Supervised.STORE)) as connected:
            return await Supervisor(connected, listener, runtime_dir, restarts).run()


class Supervisor:
    """Keeps ``settings.workers`` web processes running on ``listener``.

    ``runtime_dir``: directory of the sockets over which the processes exchange metrics.
    """

    def __init__(
        self, settings: Settings, listener: socket.socket, runtime_dir: Path, restarts: RestartCounts
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._runtime_dir = runtime_dir
        self._restarts = restarts
        self._background_process = BackgroundProcess(
            settings, PeerMetrics(runtime_dir, SINGLE_PROCESS), restarts
        )
        self._background_task: asyncio.Task[None] | None = None
        self._layout: IndexLayout | None = None
        self._stop = asyncio.Event()
        self._restart_requests = [asyncio.Event() for _ in range(settings.workers)]
        self._restart_lock = asyncio.Lock()
        self._worker_restarted = asyncio.Event()
        self._ready_workers: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._exit_code = 0

    async def run(self) -> int:
        """Supervise until a stop signal; the exit code."""
        loop = asyncio.get_running_loop()
        on_stop_signal(self._begin_shutdown)
        loop.add_signal_handler(
            signal.SIGHUP, lambda: self._tasks.append(loop.create_task(self._rolling_restart()))
        )
        await asyncio.gather(*(self._supervise_worker(index) for index in range(self._settings.workers)))
        for task in self._tasks:
            task.cancel()
        if self._background_task is not None:
            await self._background_task
        return self._exit_code

    def _begin_shutdown(self) -> None:
        """Stop accepting: new connections are refused immediately instead of waiting in the backlog."""
        self._stop.set()
        self._listener.close()

    async def _supervise_worker(self, index: int) -> None:
        """Keep worker number ``index`` running until the shutdown."""
        backoff = RestartBackoff()
        restart_requested = self._restart_requests[index]
        worker: ChildProcess | None = None
        while not self._stop.is_set():
            try:
                worker = worker or self._start_worker(index)
            except OSError as error:  # no memory or process id left
                failure = f"cannot be started ({error.strerror or error})"
            else:
                await wait_any(worker.ready, worker.ended, worker.hung, self._stop)
                if worker.ready.is_set():
                    backoff.on_ready()
                    self._on_worker_ready(index, worker.ready_payload)
                    await wait_any(worker.ended, worker.hung, restart_requested, self._stop)
                if self._stop.is_set():
                    break
                if restart_requested.is_set() and not (worker.ended.is_set() or worker.hung.is_set()):
                    worker = await self._replace_worker(index, worker)
                    restart_requested.clear()
                    self._worker_restarted.set()
                    continue
                await worker.stop(SHUTDOWN_TIMEOUT_S)
                failure = worker.exit_reason()
            if self._layout is None:
                self._fail_start(index, failure, worker)
                break
            worker = None
            pause_s = backoff.next_pause_s()
            log.error("worker %d %s; starting another one in %g s", index, failure, pause_s)
            self._restarts.add(Supervised.WORKER)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause_s)
        if worker is not None:
            await worker.stop(SHUTDOWN_TIMEOUT_S)

    def _fail_start(self, index: int, failure: str, worker: ChildProcess | None) -> None:
        """End the service: no worker was ready yet, and a restart would fail again."""
        code = worker.process.exitcode if worker is not None else None
        if code is None or code < 0:  # otherwise the worker has logged why
            log.error("worker %d %s before the service was ready", index, failure)
        self._exit_code = code if code is not None and code > 0 else EXIT_UNAVAILABLE
        self._begin_shutdown()

    def _start_worker(self, index: int) -> ChildProcess:
        """Start a process; a replacement waits for a store that is unavailable. Raises OSError."""
        peer_metrics = PeerMetrics(self._runtime_dir, str(index))
        is_replacement = self._layout is not None
        return ChildProcess(
            f"aggregator-worker-{index}",
            worker_main,
            self._settings,
            self._listener,
            peer_metrics,
            is_replacement,
        )

    async def _replace_worker(self, index: int, old: ChildProcess) -> ChildProcess:
        """Start a worker and stop ``old``; returns the new one, or ``old`` if the new one cannot start."""
        try:
            new = self._start_worker(index)
        except OSError as error:
            log.error("the new worker %d cannot be started (%s); the old one continues", index, error)
            return old
        await wait_any(new.ready, new.ended, new.hung, self._stop)
        leaving, staying = (old, new) if new.ready.is_set() else (new, old)
        if staying is old and not self._stop.is_set():
            log.error("the new worker %d did not become ready; the old one continues", index)
        await leaving.stop(SHUTDOWN_TIMEOUT_S)
        return staying

    async def _rolling_restart(self) -> None:
        """Replace one worker at a time, so that the full number serves at every moment."""
        async with self._restart_lock:
            log.info("rolling restart of %d workers", len(self._restart_requests))
            for restart_requested in self._restart_requests:
                self._worker_restarted.clear()
                restart_requested.set()
                await self._worker_restarted.wait()
            if self._layout is not None:
                self._background_process.restart(self._layout)
            log.info("rolling restart finished")

    def _on_worker_ready(self, index: int, layout: IndexLayout) -> None:
        self._layout = layout
        if self._background_task is None:
            self._background_task = asyncio.create_task(
                self._background_process.supervise(layout, self._stop)
            )
        if index not in self._ready_workers:
            self._ready_workers.add(index)
            if len(self._ready_workers) == self._settings.workers:
                self._tasks.append(asyncio.create_task(announce(self._settings, self._settings.port)))


def worker_main(
    settings: Settings,
    listener: socket.socket,
    peer_metrics: PeerMetrics,
    wait_for_store: bool,
    pipe: Connection,
) -> None:
    """Entry point of a worker: serve until SIGTERM, or until the supervisor is gone."""
    run_child(
        lambda: _serve_until_orphaned(
            settings, listener, pipe, peer_metrics, wait_for_store, fork_analysis(settings)
        ),
        settings,
        log,
        ignored_signals=(signal.SIGHUP,),
    )


async def _serve_until_orphaned(
    settings: Settings,
    listener: socket.socket,
    pipe: Connection,
    peer_metrics: PeerMetrics,
    wait_for_store: bool,
    pools: AnalysisPools,
) -> int:
    stop = asyncio.Event()
    stop_with_parent(pipe, stop, SHUTDOWN_TIMEOUT_S)
    send_heartbeats(pipe)

    async def on_ready(service: Service, port: int) -> None:
        report_ready(pipe, service.layout)

    return await run_server(
        settings,
        pools,
        on_ready=on_ready,
        listener=listener,
        stop=stop,
        peer_metrics=peer_metrics,
        wait_for_store=wait_for_store,
    )


@contextlib.contextmanager
def _bind_socket(settings: Settings) -> Iterator[socket.socket]:
    """The bound socket of all workers. Connections are refused until the first ready worker listens."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise bind_error(settings, error) from error
        yield listener
