"""``aggregator serve`` with one worker: requests are answered in this process until it is told to stop.

What nobody waits for is done in a process beside it (``scheduler.py``). SIGTERM and SIGINT end both within
``SHUTDOWN_S`` seconds: requests under way are answered, the embedded store writes its log to disk. With more workers
see ``workers.py``, which also renews them on SIGHUP; here there is nobody to take over, so SIGHUP is only logged.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import errno
import logging
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.cli.loop import run_loop, settle_in
from aggregator.domain import Article
from aggregator.errors import ConfigurationError
from aggregator.http.siblings import ALONE, Siblings
from aggregator.settings import Settings

SHUTDOWN_S = 10.0
# What a worker analyses before it is ready: dictionaries and statistics load with the first text that needs them,
# and whoever sent that text to a worker that replaces another one would wait for them.
WARMING = tuple(
    Article(id="", text=text)
    for text in (
        "The ferry runs again.",
        "Die Fähre nach Estmark fährt am Montag wieder.",
        "渡轮星期一恢复通航。",
    )
)
ONE_WORKER = "SIGHUP renews workers one after the other; with one worker restart the service instead"
DEMO_PAUSE_S = 0.2

NO_KEYS = (
    "host: other machines reach {host}, and there is no access key yet; make one (`aggregator keys add NAME --role "
    "admin`), or set AGGREGATOR_BOOTSTRAP_KEY, or open_access when something in front of the service asks for keys."
)

if TYPE_CHECKING:
    from aggregator.app import Service
    from aggregator.housekeeping import Housekeeping

log = logging.getLogger("aggregator.serve")


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Serve until told to stop. Raises ConfigurationError, ModelError or StoreUnavailable at start."""
    with _demo_directory(args, settings) as settings:
        print(f"aggregator: {store_line(settings)}", flush=True)
        if settings.workers > 1:
            from aggregator.cli.workers import supervise

            return supervise(settings)
        with tempfile.TemporaryDirectory(prefix="aggregator-") as meeting:
            siblings = None if settings.in_memory else Siblings(Path(meeting), ALONE)
            return run_loop(_serve_alone(settings, siblings))


async def _serve_alone(settings: Settings, siblings: Siblings | None) -> int:
    """This process has all there is: the store if it is ours, and the process of the scheduled work."""
    from aggregator.store.opened import located

    async def then(service: Service, port: int) -> None:
        await announce(settings, port)

    async with located(settings) as found:
        return await serve_here(found, then=then, siblings=siblings)


async def serve_here(
    settings: Settings,
    *,
    then: Callable[[Service, int], Coroutine[Any, Any, None]],
    listener: socket.socket | None = None,
    stop: asyncio.Event | None = None,
    siblings: Siblings | None = None,
) -> int:
    """Open everything and serve; ``then`` runs beside it as soon as requests are answered.

    ``listener``: one that is shared with other workers, whose parent sees to the scheduled work.
    """
    from aggregator.app import open_service
    from aggregator.http.server import serve

    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if listener is None:
        loop.add_signal_handler(signal.SIGHUP, log.warning, ONE_WORKER)
    beside: list[asyncio.Task[None]] = []

    def ready(port: int) -> None:
        beside.append(asyncio.ensure_future(then(service, port)))

    async with open_service(settings, processes=settings.analysis_processes) as service:
        if await service.access.lacks_keys():
            raise ConfigurationError(NO_KEYS.format(host=settings.host))
        # Dictionaries load when first needed, which would take the first crawler's deadline.
        await service.analyse_many(WARMING)
        settle_in()
        work = asyncio.create_task(_see_to_work(service, siblings, stop, ours=listener is None))
        try:
            await serve(
                service,
                settings.host,
                settings.port,
                listener=listener,
                ready=ready,
                stop=stop,
                siblings=siblings,
            )
        except OSError as error:
            raise address_problem(settings, error) from error
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            stop.set()
            await work
    return 0


async def _see_to_work(
    service: Service, siblings: Siblings | None, stop: asyncio.Event, *, ours: bool
) -> None:
    """The scheduled work until ``stop``: here where only this process has the store, else in a process of its own."""
    if siblings is None:
        service.scheduled.jobs.start()
        await stop.wait()
        await service.scheduled.jobs.stop()
        return
    following = asyncio.create_task(_follow(service.scheduled.housekeeping))
    if ours:
        from aggregator.cli.scheduler import Scheduler

        await Scheduler(service.settings, siblings).keep(service.layout, stop)
    await stop.wait()
    following.cancel()


async def _follow(housekeeping: Housekeeping) -> None:
    """Learn what the upkeep changed, which another process does."""
    from aggregator.housekeeping import TURN_S

    while True:
        await asyncio.sleep(TURN_S)
        await housekeeping.follow()


async def announce(settings: Settings, port: int) -> None:
    """What follows readiness: the line with the address, then the demonstration if it is wanted."""
    url = url_of(settings.host, port)
    print(f"aggregator: ready on {url}", flush=True)
    if settings.demo:
        await show_demo(url, settings.key or settings.bootstrap_key)


async def show_demo(url: str, key: str = "") -> None:
    """Replay the demonstration and print what came of it; its failure does not end the service."""
    from aggregator import demo

    try:
        report = await demo.replay(url, pause_s=DEMO_PAUSE_S, key=key)
    except Exception:
        log.exception("the demonstration failed; the service goes on")
        return
    print(report.text(url), flush=True)


def url_of(host: str, port: int) -> str:
    """Where a person on this machine reaches the service."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown and not shown.startswith('[') else shown}:{port}"


def store_line(settings: Settings) -> str:
    """One line that says where the articles go; never shows a password."""
    if settings.in_memory:
        return "store: memory; everything is forgotten at the end"
    if settings.store_url:
        return f"store: {without_password(settings.store_url)}"
    place = Path(settings.data_dir).absolute()
    return f"store: embedded Valkey in {place} (appendfsync {settings.appendfsync})"


def without_password(url: str) -> str:
    """``redis://user:secret@host`` -> ``redis://host``."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2].partition('?')[0]}"


def address_problem(settings: Settings, error: OSError) -> ConfigurationError:
    """The port is taken, or the address is not ours."""
    where = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return ConfigurationError(
            f"port: {where} is in use by another process; stop it or choose another --port."
        )
    return ConfigurationError(f"host: cannot listen on {where} ({error.strerror or error}).")


@contextlib.contextmanager
def _demo_directory(args: argparse.Namespace, settings: Settings) -> Iterator[Settings]:
    """A demonstration gets a directory that is removed at the end, unless the user named a store."""
    named = bool(settings.store_url or args.data_dir)
    if not settings.demo or named:
        yield settings
        return
    directory = tempfile.mkdtemp(prefix="aggregator-demo-")
    try:
        print(
            "aggregator: demonstration data is removed at the end; give --data-dir to keep it.",
            file=sys.stderr,
            flush=True,
        )
        yield dataclasses.replace(settings, data_dir=directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
