"""``aggregator serve --workers N``: N server processes that share one port and one store.

This process serves nothing itself. It owns the embedded store (when no store_url is given) and the socket that
all workers accept from, starts the workers, replaces one that dies and stops all of them when told to. A worker
whose supervisor vanishes stops by itself: the pipe between them closes.

SIGHUP renews the workers one after the other: a new one starts, and only when it serves does the old one drain
and leave. Since all accept from one socket, a connection that waits to be accepted is never lost with a worker
(with a socket each, SO_REUSEPORT, the kernel had already promised it to the one that leaves).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import multiprocessing
import signal
import socket
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from aggregator.cli import exit_code, logs
from aggregator.cli.serve import SHUTDOWN_S, address_problem, run_loop, serve_here, then_announce
from aggregator.errors import AggregatorError, ConfigurationError
from aggregator.http.siblings import Siblings
from aggregator.settings import Settings

RESTART_PAUSE_S = 1.0
READY = "ready"

log = logging.getLogger("aggregator.workers")


def supervise(settings: Settings) -> int:
    """Run the workers until SIGTERM or SIGINT. Raises ConfigurationError, StoreUnavailable."""
    if settings.store_url.startswith("memory"):
        raise ConfigurationError(
            "workers: a memory store cannot be shared; use 1 worker or another store_url."
        )
    with (
        _bound(settings) as listener,
        _store_for_all(settings) as (url, store),
        tempfile.TemporaryDirectory(prefix="aggregator-") as meeting,
    ):
        shared = dataclasses.replace(settings, store_url=url, port=int(listener.getsockname()[1]))
        return run_loop(Supervisor(shared, listener, store, Path(meeting)).run())


class Worker:
    """One worker process as its supervisor sees it."""

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        self.process = process
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self._pipe = pipe
        asyncio.get_running_loop().add_reader(pipe.fileno(), self._heard)

    def _heard(self) -> None:
        try:
            self._pipe.recv()
        except (EOFError, OSError):
            self._hang_up()
            self.ended.set()
        else:
            self.ready.set()

    async def end(self) -> None:
        """Ask, wait, insist. Idempotent."""
        await asyncio.to_thread(_end, self.process)
        self._hang_up()

    def _hang_up(self) -> None:
        if not self._pipe.closed:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._pipe.close()


class Supervisor:
    """Keeps ``settings.workers`` processes alive on ``listener``; ``meeting``: where they find one another."""

    def __init__(
        self, settings: Settings, listener: socket.socket, store: object | None, meeting: Path
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._store = store
        self._meeting = meeting
        self._stop = asyncio.Event()
        self._renew = [asyncio.Event() for _ in range(settings.workers)]
        self._renewing = asyncio.Lock()
        self._renewal_done = asyncio.Event()
        self._ready: set[int] = set()
        self._code = 0
        self._spawn = multiprocessing.get_context("spawn")

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._leave)
        beside = [asyncio.create_task(self._keep_store())]
        loop.add_signal_handler(signal.SIGHUP, lambda: beside.append(loop.create_task(self._renew_all())))
        await asyncio.gather(*(self._keep(index) for index in range(self._settings.workers)))
        for task in beside:
            task.cancel()
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
            await _first(worker.ready, worker.ended, self._stop)
            if worker.ready.is_set():
                self._one_ready(index)
                await _first(worker.ended, renew, self._stop)
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
            await worker.end()
            log.error("worker %d ended with code %s; starting another one", index, worker.process.exitcode)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), RESTART_PAUSE_S)
            if self._stop.is_set():
                break
            worker = self._start(index)
        await worker.end()

    def _start(self, index: int) -> Worker:
        ours, theirs = self._spawn.Pipe()
        process = self._spawn.Process(
            target=serve_shared,
            args=(self._settings, self._listener, theirs, Siblings(self._meeting, index)),
            name=f"aggregator-worker-{index}",
        )
        process.start()
        theirs.close()
        return Worker(process, ours)

    async def _renewed(self, index: int, old: Worker) -> Worker:
        """The worker that follows ``old``; ``old`` itself when the new one cannot start."""
        new = self._start(index)
        await _first(new.ready, new.ended, self._stop)
        leaving, staying = (old, new) if new.ready.is_set() else (new, old)
        if staying is old and not self._stop.is_set():
            log.error("the new worker %d did not become ready; the old one goes on", index)
        await leaving.end()
        return staying

    async def _renew_all(self) -> None:
        """One place after the other, so that never fewer than all workers serve."""
        async with self._renewing:
            log.info("renewing %d workers", len(self._renew))
            for renew in self._renew:
                self._renewal_done.clear()
                renew.set()
                await self._renewal_done.wait()
            log.info("all workers are renewed")

    def _one_ready(self, index: int) -> None:
        if index not in self._ready:
            self._ready.add(index)
            if len(self._ready) == self._settings.workers:
                self._then = asyncio.create_task(then_announce(self._settings)(self._settings.port))

    async def _keep_store(self) -> None:
        """Bring the embedded store back if it dies."""
        revive = getattr(self._store, "revive", None)
        while revive is not None:
            await asyncio.sleep(1.0)
            if revive():
                log.error("the embedded store had ended; it was started again")


def serve_shared(settings: Settings, listener: socket.socket, pipe: Connection, siblings: Siblings) -> None:
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
    asyncio.get_running_loop().add_reader(pipe.fileno(), stop.set)  # only ever readable at its end

    async def then(port: int) -> None:
        pipe.send(READY)

    return await serve_here(settings, then=then, listener=listener, stop=stop, siblings=siblings)


async def _first(*events: asyncio.Event) -> None:
    """Wait for any of them."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def _end(process: SpawnProcess) -> None:
    """Ask, wait, insist."""
    if process.is_alive():
        process.terminate()
    process.join(SHUTDOWN_S)
    if process.is_alive():
        process.kill()
        process.join()


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


@contextlib.contextmanager
def _store_for_all(settings: Settings) -> Iterator[tuple[str, object | None]]:
    """The URL every worker uses, and our embedded server behind it if it is ours."""
    if settings.store_url:
        yield settings.store_url, None
        return
    from aggregator.store.embedded import EmbeddedServer

    with EmbeddedServer(Path(settings.data_dir), appendfsync=settings.appendfsync) as server:
        yield server.url, server
