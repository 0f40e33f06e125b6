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
from aggregator.http.metrics.multiprocess import PeerMetrics
from aggregator.runtime.addresses import bind_error
from aggregator.runtime.event_loop import tune_interpreter
from aggregator.settings import Settings

if TYPE_CHECKING:
    from aggregator.app import Service
    from aggregator.background.maintenance import IndexMaintenance

SHUTDOWN_TIMEOUT_S = 10.0
# What a worker analyses before it is ready: dictionaries and statistics load with the first text that needs them,
# and whoever sent that text to a worker that replaces another one would wait for them.
WARMUP_ARTICLES = tuple(
    Article(id="", text=text)
    for text in (
        "The ferry runs again.",
        "Die Fähre nach Estmark fährt am Montag wieder.",
        "渡轮星期一恢复通航。",
    )
)
SIGHUP_IGNORED_MESSAGE = (
    "SIGHUP renews workers one after the other; with one worker restart the service instead"
)
NO_API_KEYS_MESSAGE = (
    "host: other machines reach {host}, and there is no access key yet; make one (`aggregator keys add NAME --role "
    "admin`), or set AGGREGATOR_BOOTSTRAP_KEY, or auth_disabled when something in front of the service asks for keys."
)

log = logging.getLogger("aggregator.serve")


async def run_server(
    settings: Settings,
    *,
    on_ready: Callable[[Service, int], Coroutine[Any, Any, None]],
    listener: socket.socket | None = None,
    stop: asyncio.Event | None = None,
    peer_metrics: PeerMetrics | None = None,
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
        loop.add_signal_handler(signal.SIGHUP, log.warning, SIGHUP_IGNORED_MESSAGE)
    beside: list[asyncio.Task[None]] = []

    def ready(port: int) -> None:
        beside.append(asyncio.ensure_future(on_ready(service, port)))

    async with open_service(settings, processes=settings.analysis_processes) as service:
        if await service.api_keys.is_missing_keys():
            raise ConfigurationError(NO_API_KEYS_MESSAGE.format(host=settings.host))
        await warm_up(service)
        tune_interpreter()
        work = asyncio.create_task(
            _run_background(service, peer_metrics, stop, owns_background_process=listener is None)
        )
        try:
            await serve(
                service,
                settings.host,
                settings.port,
                listener=listener,
                on_ready=ready,
                stop=stop,
                peer_metrics=peer_metrics,
            )
        except OSError as error:
            raise bind_error(settings, error) from error
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            stop.set()
            await work
    return 0


async def warm_up(service: Service) -> None:
    """Load what the first articles would wait for: here, where single ones are analysed, and where batches are."""
    service.analyzer.analyze_many(WARMUP_ARTICLES)
    await service.analyze_many(WARMUP_ARTICLES)


async def _run_background(
    service: Service, peer_metrics: PeerMetrics | None, stop: asyncio.Event, *, owns_background_process: bool
) -> None:
    """The scheduled work until ``stop``: here where only this process has the store, else in a process of its own."""
    if peer_metrics is None:
        service.background.scheduler.start()
        await stop.wait()
        await service.background.scheduler.stop()
        return
    following = asyncio.create_task(_refresh_maintenance(service.background.maintenance))
    if owns_background_process:
        from aggregator.runtime.background_process import BackgroundProcess

        await BackgroundProcess(service.settings, peer_metrics).supervise(service.layout, stop)
    await stop.wait()
    following.cancel()


async def _refresh_maintenance(maintenance: IndexMaintenance) -> None:
    """Learn what the upkeep changed, which another process does."""
    from aggregator.background.maintenance import MAINTENANCE_INTERVAL_S

    while True:
        await asyncio.sleep(MAINTENANCE_INTERVAL_S)
        await maintenance.refresh()
