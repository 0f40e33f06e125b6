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

from aggregator.domain import Layout
from aggregator.errors import AggregatorError, ConfigurationError
from aggregator.http.metrics.multiprocess import ALONE, Siblings
from aggregator.runtime import logging as logs
from aggregator.runtime.addresses import address_problem
from aggregator.runtime.background_process import Scheduler
from aggregator.runtime.child_process import Child, first, show_ready, stop_with_parent
from aggregator.runtime.event_loop import run_loop
from aggregator.runtime.exit_codes import exit_code
from aggregator.runtime.startup import announce
from aggregator.runtime.web_process import SHUTDOWN_S, serve_here
from aggregator.settings import Settings
from aggregator.store.factory import located

if TYPE_CHECKING:
    from aggregator.app import Service

RESTART_PAUSE_S = 1.0

log = logging.getLogger("aggregator.workers")


def supervise(settings: Settings) -> int:
    """Run the workers until SIGTERM or SIGINT. Raises ConfigurationError, StoreUnavailable."""
    if settings.in_memory:
        raise ConfigurationError(
            "workers: a memory store cannot be shared; use 1 worker or another store_url."
        )
    with (
        _bound(settings) as listener,
        tempfile.TemporaryDirectory(prefix="aggregator-") as meeting,
    ):
        shared = dataclasses.replace(settings, port=int(listener.getsockname()[1]))
        return run_loop(_supervise(shared, listener, Path(meeting)))


async def _supervise(settings: Settings, listener: socket.socket, meeting: Path) -> int:
    async with located(settings) as found:
        return await Supervisor(found, listener, meeting).run()


class Supervisor:
    """Keeps ``settings.workers`` processes alive on ``listener``; ``meeting``: where they find one another."""

    def __init__(self, settings: Settings, listener: socket.socket, meeting: Path) -> None:
        self._settings = settings
        self._listener = listener
        self._meeting = meeting
        self._scheduler = Scheduler(settings, Siblings(meeting, ALONE))
        self._work: asyncio.Task[None] | None = None
        self._layout: Layout | None = None
        self._stop = asyncio.Event()
        self._renew = [asyncio.Event() for _ in range(settings.workers)]
        self._renewing = asyncio.Lock()
        self._renewal_done = asyncio.Event()
        self._ready: set[int] = set()
        self._beside: list[asyncio.Task[None]] = []
        self._code = 0

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._leave)
        loop.add_signal_handler(
            signal.SIGHUP, lambda: self._beside.append(loop.create_task(self._renew_all()))
        )
        await asyncio.gather(*(self._keep(index) for index in range(self._settings.workers)))
        for task in self._beside:
            task.cancel()
        if self._work is not None:
            await self._work
        return self._code

    def _leave(self) -> None:
        """Whoever connects from now on is refused at once, not left waiting for nobody."""
        self._stop.set()
        self._listener.close()

    async def _keep(self, index: int) -> None:
        """One worker after another in the place ``index``, until told to stop."""
        worker = self._start(index)
        renew = self._renew[index]
        while True:
            await first(worker.ready, worker.ended, self._stop)
            if worker.ready.is_set():
                self._one_ready(index, worker.said)
                await first(worker.ended, worker.hung, renew, self._stop)
            if self._stop.is_set():
                break
            if not worker.ready.is_set():  # it would fail again: its message is on standard error
                self._code = worker.process.exitcode or 1
                self._leave()
                break
            if renew.is_set():
                worker = await self._renewed(index, worker)
                renew.clear()
                self._renewal_done.set()
                continue
            await worker.end(SHUTDOWN_S)
            log.error("worker %d %s; starting another one", index, worker.fate())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), RESTART_PAUSE_S)
            if self._stop.is_set():
                break
            worker = self._start(index)
        await worker.end(SHUTDOWN_S)

    def _start(self, index: int) -> Child:
        siblings = Siblings(self._meeting, str(index))
        return Child(f"aggregator-worker-{index}", serve_shared, self._settings, self._listener, siblings)

    async def _renewed(self, index: int, old: Child) -> Child:
        """The worker that follows ``old``; ``old`` itself when the new one cannot start."""
        new = self._start(index)
        await first(new.ready, new.ended, self._stop)
        leaving, staying = (old, new) if new.ready.is_set() else (new, old)
        if staying is old and not self._stop.is_set():
            log.error("the new worker %d did not become ready; the old one goes on", index)
        await leaving.end(SHUTDOWN_S)
        return staying

    async def _renew_all(self) -> None:
        """One place after the other, so that never fewer than all workers serve."""
        async with self._renewing:
            log.info("renewing %d workers", len(self._renew))
            for renew in self._renew:
                self._renewal_done.clear()
                renew.set()
                await self._renewal_done.wait()
            if self._layout is not None:
                self._scheduler.renew(self._layout)
            log.info("all workers are renewed")

    def _one_ready(self, index: int, layout: Layout) -> None:
        self._layout = layout
        if self._work is None:
            self._work = asyncio.create_task(self._scheduler.keep(layout, self._stop))
        if index not in self._ready:
            self._ready.add(index)
            if len(self._ready) == self._settings.workers:
                self._beside.append(asyncio.create_task(announce(self._settings, self._settings.port)))


def serve_shared(settings: Settings, listener: socket.socket, siblings: Siblings, pipe: Connection) -> None:
    """A worker process: serve until SIGTERM, or until the supervisor is gone."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # for the supervisor, though a terminal tells all of us
    logs.configure(settings.log_level, settings.log_format, with_process=True)
    try:
        code = run_loop(_serve_until_alone(settings, listener, pipe, siblings))
    except AggregatorError as error:
        log.error("%s", error)
        code = exit_code(error)
    raise SystemExit(code)


async def _serve_until_alone(
    settings: Settings, listener: socket.socket, pipe: Connection, siblings: Siblings
) -> int:
    stop = asyncio.Event()
    stop_with_parent(pipe, stop)

    async def then(service: Service, port: int) -> None:
        show_ready(pipe, service.layout)

    return await serve_here(settings, then=then, listener=listener, stop=stop, siblings=siblings)


@contextlib.contextmanager
def _bound(settings: Settings) -> Iterator[socket.socket]:
    """The socket of all workers. The first that is ready begins to listen: until then callers are refused."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise address_problem(settings, error) from error
        yield listener
