"""``aggregator serve --workers N``: N server processes that share one port and one store.

This process serves nothing itself. It owns the embedded store (when no store_url is given), reserves the
port, starts the workers, replaces one that dies and stops all of them when told to. A worker whose
supervisor vanishes stops by itself: the pipe between them closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import multiprocessing
import signal
import socket
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from aggregator.cli import logs
from aggregator.cli.serve import SHUTDOWN_S, address_problem, run_loop, serve_here, then_announce
from aggregator.errors import AggregatorError, ConfigurationError
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
    with _reserved(settings) as port, _store_for_all(settings) as (url, store):
        shared = dataclasses.replace(settings, store_url=url, port=port)
        return run_loop(Supervisor(shared, store).run())


class Supervisor:
    """Keeps ``settings.workers`` processes alive."""

    def __init__(self, settings: Settings, store: object | None) -> None:
        self._settings = settings
        self._store = store
        self._stop = asyncio.Event()
        self._ready = 0
        self._code = 0
        self._spawn = multiprocessing.get_context("spawn")

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        beside = asyncio.create_task(self._keep_store())
        await asyncio.gather(*(self._keep(index) for index in range(self._settings.workers)))
        beside.cancel()
        return self._code

    async def _keep(self, index: int) -> None:
        """One worker after another in the place ``index``, until told to stop."""
        while not self._stop.is_set():
            ours, theirs = self._spawn.Pipe()
            process = self._spawn.Process(
                target=worker, args=(self._settings, theirs), name=f"aggregator-worker-{index}"
            )
            process.start()
            theirs.close()
            was_ready = await self._until_end(process, ours)
            if self._stop.is_set():
                return
            if not was_ready:  # it would fail again: its message is on standard error
                self._code = process.exitcode or 1
                self._stop.set()
                return
            log.error("worker %d ended with code %s; starting another one", index, process.exitcode)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), RESTART_PAUSE_S)

    async def _until_end(self, process: SpawnProcess, pipe: Connection) -> bool:
        """Wait until the worker has ended by itself or by our order; True when it had become ready."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        ready = asyncio.Event()

        def heard() -> None:
            try:
                pipe.recv()
            except (EOFError, OSError):
                loop.remove_reader(pipe.fileno())
                ended.set()
                return
            ready.set()
            self._one_ready()

        loop.add_reader(pipe.fileno(), heard)
        waiting = {asyncio.ensure_future(ended.wait()), asyncio.ensure_future(self._stop.wait())}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        loop.remove_reader(pipe.fileno())
        await asyncio.to_thread(_end, process)
        pipe.close()
        return ready.is_set()

    def _one_ready(self) -> None:
        self._ready += 1
        if self._ready == self._settings.workers:
            self._then = asyncio.create_task(then_announce(self._settings)(self._settings.port))

    async def _keep_store(self) -> None:
        """Bring the embedded store back if it dies."""
        revive = getattr(self._store, "revive", None)
        while revive is not None:
            await asyncio.sleep(1.0)
            if revive():
                log.error("the embedded store had ended; it was started again")


def worker(settings: Settings, pipe: Connection) -> None:
    """A worker process: serve until SIGTERM, or until the supervisor is gone."""
    logs.configure(settings.log_level, with_process=True)
    try:
        code = run_loop(_serve_until_alone(settings, pipe))
    except AggregatorError as error:
        log.error("%s", error)
        code = 3 if type(error).__name__ in ("StoreUnavailable", "Contention") else 2
    raise SystemExit(code)


async def _serve_until_alone(settings: Settings, pipe: Connection) -> int:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe.fileno(), stop.set)  # only ever readable at its end

    async def then(port: int) -> None:
        pipe.send(READY)

    return await serve_here(settings, then=then, reuse_port=True, stop=stop)


def _end(process: SpawnProcess) -> None:
    """Ask, wait, insist."""
    if process.is_alive():
        process.terminate()
    process.join(SHUTDOWN_S)
    if process.is_alive():
        process.kill()
        process.join()


@contextlib.contextmanager
def _reserved(settings: Settings) -> Iterator[int]:
    """The port, bound but not listening, so that port 0 means the same one for all workers."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            reserved.bind((settings.host, settings.port))
        except OSError as error:
            raise address_problem(settings, error) from error
        yield int(reserved.getsockname()[1])


@contextlib.contextmanager
def _store_for_all(settings: Settings) -> Iterator[tuple[str, object | None]]:
    """The URL every worker uses, and our embedded server behind it if it is ours."""
    if settings.store_url:
        yield settings.store_url, None
        return
    from aggregator.store.embedded import EmbeddedServer

    with EmbeddedServer(Path(settings.data_dir), appendfsync=settings.appendfsync) as server:
        yield server.url, server
