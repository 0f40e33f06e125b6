"""Web process: serves HTTP requests, alone (``cli.serve``) or as one of several workers (``supervisor``)."""

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
from aggregator.runtime.background_process import BackgroundProcess
from aggregator.runtime.event_loop import on_stop_signal, tune_interpreter
from aggregator.runtime.exit_codes import EXIT_OK
from aggregator.settings import Settings

if TYPE_CHECKING:
    from aggregator.app import Service
    from aggregator.background.maintenance import IndexMaintenance

SHUTDOWN_TIMEOUT_S = 10.0
# Analyzed before the process is ready: dictionaries and language statistics are loaded by the first text that
# needs them, and during a rolling restart a client would wait for that.
WARMUP_ARTICLES = tuple(
    Article(id="", text=text)
    for text in (
        "The ferry runs again.",
        "Die Fähre nach Estmark fährt am Montag wieder.",
        "渡轮星期一恢复通航。",
    )
)
SIGHUP_IGNORED_MESSAGE = (
    "SIGHUP ignored: a rolling restart needs 2 or more workers; with 1 worker restart the service"
)
NO_API_KEYS_MESSAGE = (
    "host: {host} is reachable from other machines but no API key exists. Create one (`aggregator keys add "
    "NAME --role admin`) or set AGGREGATOR_BOOTSTRAP_KEY; behind an authenticating proxy set "
    "AGGREGATOR_AUTH_DISABLED=true."
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
    """Open the service and serve until SIGTERM, SIGINT or ``stop``; the exit code.

    Args:
        settings: Settings with the URL of a store that runs, or of the memory store.
        on_ready: Called with the service and its port, and run in a task, once requests are answered.
        listener: Socket shared with other workers, whose supervisor runs the background process; None: this
            process binds its own socket and runs the background process.
        stop: Event that ends the server.
        peer_metrics: Metrics of the other processes; None: this is the only process (memory store).

    Raises ConfigurationError, ModelError or StoreUnavailable at start.
    """
    from aggregator.app import open_service
    from aggregator.http.server import serve

    stop = stop or asyncio.Event()
    on_stop_signal(stop.set)
    if listener is None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, log.warning, SIGHUP_IGNORED_MESSAGE)
    ready_tasks: list[asyncio.Task[None]] = []

    def ready(port: int) -> None:
        ready_tasks.append(asyncio.ensure_future(on_ready(service, port)))

    async with open_service(settings, processes=settings.analysis_processes) as service:
        if await service.api_keys.is_missing_keys():
            raise ConfigurationError(NO_API_KEYS_MESSAGE.format(host=settings.host))
        await warm_up(service)
        tune_interpreter()
        background = asyncio.create_task(
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
            for task in ready_tasks:
                task.cancel()
            await asyncio.gather(*ready_tasks, return_exceptions=True)
            stop.set()
            await background
    return EXIT_OK


async def warm_up(service: Service) -> None:
    """Analyze one short article per script, in this process (single articles) and in the pool (batches)."""
    service.analyzer.analyze_many(WARMUP_ARTICLES)
    await service.analyze_many(WARMUP_ARTICLES)


async def _run_background(
    service: Service, peer_metrics: PeerMetrics | None, stop: asyncio.Event, *, owns_background_process: bool
) -> None:
    """Run the background services until ``stop``: with a memory store here, else in their own process."""
    if peer_metrics is None:
        service.background.scheduler.start()
        await stop.wait()
        await service.background.scheduler.stop()
        return
    refreshing = asyncio.create_task(_refresh_maintenance(service.background.maintenance))
    if owns_background_process:
        await BackgroundProcess(service.settings, peer_metrics).supervise(service.layout, stop)
    await stop.wait()
    refreshing.cancel()


async def _refresh_maintenance(maintenance: IndexMaintenance) -> None:
    """Read periodically what the maintenance in the background process has changed."""
    from aggregator.background.maintenance import MAINTENANCE_INTERVAL_S

    while True:
        await asyncio.sleep(MAINTENANCE_INTERVAL_S)
        await maintenance.refresh()
