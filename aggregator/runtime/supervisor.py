"""``aggregator serve --workers N``: N server processes that share one port and one store.

This process serves nothing itself. It owns the embedded store (when no store_url is given) and the socket that
all workers accept from, starts the workers and one process for the scheduled work of all of them (``scheduler.py``),
replaces one that dies or hangs and stops all of them when told to. A process whose supervisor vanishes stops by itself: the pipe
between them closes.

SIGHUP renews the workers one after the other: a new one starts, and only when it serves does the old one drain
and leave; at the end the scheduled work goes on in a new process too. Since all accept from one socket, a connection that waits to be accepted is never lost with a worker
(with a socket each, SO_REUSEPORT, the kernel had already promised it to the one that leaves).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import signal
import socket
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.domain import IndexLayout
from aggregator.errors import AggregatorError, ConfigurationError
from aggregator.http.metrics.multiprocess import SINGLE_PROCESS, PeerMetrics
from aggregator.runtime import logging as logs
from aggregator.runtime.addresses import bind_error
from aggregator.runtime.background_process import BackgroundProcess
from aggregator.runtime.child_process import ChildProcess, report_ready, stop_with_parent, wait_any
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import exit_code
from aggregator.runtime.startup import announce
from aggregator.runtime.web_process import SHUTDOWN_TIMEOUT_S, run_server
from aggregator.settings import Settings
from aggregator.store.factory import with_store_url

if TYPE_CHECKING:
    from aggregator.app import Service

RESTART_DELAY_S = 1.0

log = logging.getLogger("aggregator.workers")


def supervise(settings: Settings) -> int:
    """Run the workers until SIGTERM or SIGINT. Raises ConfigurationError, StoreUnavailable."""
    if settings.in_memory:
        raise ConfigurationError(
            "workers: a memory store cannot be shared; use 1 worker or another store_url."
        )
    with (
        _bind_socket(settings) as listener,
        tempfile.TemporaryDirectory(prefix="aggregator-") as meeting,
    ):
        shared = dataclasses.replace(settings, port=int(listener.getsockname()[1]))
        return run_loop(_supervise(shared, listener, Path(meeting)))


async def _supervise(settings: Settings, listener: socket.socket, runtime_dir: Path) -> int:
    async with with_store_url(settings) as found:
        return await Supervisor(found, listener, runtime_dir).run()


class Supervisor:
    """Keeps ``settings.workers`` processes alive on ``listener``; ``meeting``: where they find one another."""

    def __init__(self, settings: Settings, listener: socket.socket, runtime_dir: Path) -> None:
        self._settings = settings
        self._listener = listener
        self._runtime_dir = runtime_dir
        self._background_process = BackgroundProcess(settings, PeerMetrics(runtime_dir, SINGLE_PROCESS))
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
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._begin_shutdown)
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
        """Whoever connects from now on is refused at once, not left waiting for nobody."""
        self._stop.set()
        self._listener.close()

    async def _supervise_worker(self, index: int) -> None:
        """One worker after another in the place ``index``, until told to stop."""
        worker = self._start_worker(index)
        renew = self._restart_requests[index]
        while True:
            await wait_any(worker.ready, worker.ended, self._stop)
            if worker.ready.is_set():
                self._on_worker_ready(index, worker.ready_payload)
                await wait_any(worker.ended, worker.hung, renew, self._stop)
            if self._stop.is_set():
                break
            if not worker.ready.is_set():  # it would fail again: its message is on standard error
                self._exit_code = worker.process.exitcode or 1
                self._begin_shutdown()
                break
            if renew.is_set():
                worker = await self._replace_worker(index, worker)
                renew.clear()
                self._worker_restarted.set()
                continue
            await worker.stop(SHUTDOWN_TIMEOUT_S)
            log.error("worker %d %s; starting another one", index, worker.exit_reason())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), RESTART_DELAY_S)
            if self._stop.is_set():
                break
            worker = self._start_worker(index)
        await worker.stop(SHUTDOWN_TIMEOUT_S)

    def _start_worker(self, index: int) -> ChildProcess:
        siblings = PeerMetrics(self._runtime_dir, str(index))
        return ChildProcess(
            f"aggregator-worker-{index}", worker_main, self._settings, self._listener, siblings
        )

    async def _replace_worker(self, index: int, old: ChildProcess) -> ChildProcess:
        """The worker that follows ``old``; ``old`` itself when the new one cannot start."""
        new = self._start_worker(index)
        await wait_any(new.ready, new.ended, self._stop)
        leaving, staying = (old, new) if new.ready.is_set() else (new, old)
        if staying is old and not self._stop.is_set():
            log.error("the new worker %d did not become ready; the old one goes on", index)
        await leaving.stop(SHUTDOWN_TIMEOUT_S)
        return staying

    async def _rolling_restart(self) -> None:
        """One place after the other, so that never fewer than all workers serve."""
        async with self._restart_lock:
            log.info("renewing %d workers", len(self._restart_requests))
            for renew in self._restart_requests:
                self._worker_restarted.clear()
                renew.set()
                await self._worker_restarted.wait()
            if self._layout is not None:
                self._background_process.restart(self._layout)
            log.info("all workers are renewed")

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
    settings: Settings, listener: socket.socket, peer_metrics: PeerMetrics, pipe: Connection
) -> None:
    """A worker process: serve until SIGTERM, or until the supervisor is gone."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # for the supervisor, though a terminal tells all of us
    logs.configure_logging(settings.log_level, settings.log_format, with_process=True)
    try:
        code = run_loop(_serve_until_orphaned(settings, listener, pipe, peer_metrics))
    except AggregatorError as error:
        log.error("%s", error)
        code = exit_code(error)
    raise SystemExit(code)


async def _serve_until_orphaned(
    settings: Settings, listener: socket.socket, pipe: Connection, peer_metrics: PeerMetrics
) -> int:
    stop = asyncio.Event()
    stop_with_parent(pipe, stop)

    async def then(service: Service, port: int) -> None:
        report_ready(pipe, service.layout)

    return await run_server(settings, on_ready=then, listener=listener, stop=stop, peer_metrics=peer_metrics)


@contextlib.contextmanager
def _bind_socket(settings: Settings) -> Iterator[socket.socket]:
    """The socket of all workers. The first that is ready begins to listen: until then callers are refused."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise bind_error(settings, error) from error
        yield listener
