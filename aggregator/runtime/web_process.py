"""The process that answers requests: the only one (``serve.py``), or one of several (``workers.py``)."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from aggregator.domain import Article
from aggregator.errors import ConfigurationError
from aggregator.http.metrics.multiprocess import Siblings
from aggregator.runtime.addresses import address_problem
from aggregator.runtime.event_loop import settle_in
from aggregator.settings import Settings

if TYPE_CHECKING:
    from aggregator.app import Service
    from aggregator.background.maintenance import Housekeeping

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
NO_KEYS = (
    "host: other machines reach {host}, and there is no access key yet; make one (`aggregator keys add NAME --role "
    "admin`), or set AGGREGATOR_BOOTSTRAP_KEY, or open_access when something in front of the service asks for keys."
)

log = logging.getLogger("aggregator.serve")


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
        await warm_up(service)
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


async def warm_up(service: Service) -> None:
    """Load what the first articles would wait for: here, where single ones are analysed, and where batches are."""
    service.analyser.analyse_many(WARMING)
    await service.analyse_many(WARMING)


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
        from aggregator.runtime.background_process import Scheduler

        await Scheduler(service.settings, siblings).keep(service.layout, stop)
    await stop.wait()
    following.cancel()


async def _follow(housekeeping: Housekeeping) -> None:
    """Learn what the upkeep changed, which another process does."""
    from aggregator.background.maintenance import TURN_S

    while True:
        await asyncio.sleep(TURN_S)
        await housekeeping.follow()
