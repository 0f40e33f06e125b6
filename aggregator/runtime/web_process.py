"""Web process: serves HTTP requests, alone (``cli.serve``) or as one of several workers (``supervisor``)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from aggregator.analysis.analyzer import warm_up as load_resources
from aggregator.errors import EXIT_OK, AggregatorError, ConfigurationError
from aggregator.http.peer_metrics import PeerMetrics, RestartCounts
from aggregator.runtime.addresses import bind_error
from aggregator.runtime.background_process import keep_background_running
from aggregator.runtime.event_loop import on_stop_signal, tune_interpreter
from aggregator.runtime.processes import ForkedProcess, on_hangup
from aggregator.settings import Settings
from aggregator.store.periodic_task import repeat

if TYPE_CHECKING:
    from aggregator.app import AnalysisPools, Service

SHUTDOWN_TIMEOUT_S = 10.0
READINESS_INTERVAL_S = 5.0
NO_API_KEYS_MESSAGE = (
    "host: {host} is reachable from other machines but no API key exists. Set AGGREGATOR_BOOTSTRAP_KEY or, "
    "unless the store is in memory, create one (`aggregator keys add NAME --role admin`); behind an "
    "authenticating proxy set AGGREGATOR_AUTH_DISABLED=true."
)

log = logging.getLogger("aggregator.serve")


def fork_analysis(settings: Settings) -> AnalysisPools:
    """Analysis pools whose processes share the memory of this one. Call it before the event loop starts.

    Loads models and dictionaries of all languages: 1 s of processor time. Raises ModelError.
    """
    from aggregator.app import build_pools

    pools = build_pools(settings, settings.analysis_processes)
    pools.serving.fork_now()
    return pools


async def run_server(
    settings: Settings,
    pools: AnalysisPools,
    listener: socket.socket,
    *,
    on_ready: Callable[[int], Coroutine[Any, Any, None]],
    stop: asyncio.Event | None = None,
    peer_metrics: PeerMetrics | None = None,
    restarts: RestartCounts | None = None,
    forked_background: ForkedProcess | None = None,
) -> int:
    """Open the service and serve until SIGTERM, SIGINT or ``stop``; the exit code. Closes ``pools``.

    settings      with the URL of a store that runs, or of the memory store
    listener      bound socket, possibly shared with other workers
    on_ready      called with the port, and run in a task, once requests are answered
    peer_metrics  metrics of the other processes; None: this is the only process (memory store)
    restarts      counts the restarts of the background process, which is forked already or spawned; None:
                  this process does not run it
    Raises ConfigurationError, ModelError or StoreUnavailable at start.
    """
    from aggregator.app import open_service, reload_files
    from aggregator.http.server import serve

    stop = stop or asyncio.Event()
    on_stop_signal(stop.set)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])  # until ``on_hangup``
    ready_tasks: list[asyncio.Task[None]] = []

    def ready(port: int) -> None:
        ready_tasks.append(asyncio.ensure_future(on_ready(port)))

    async with open_service(settings, pools=pools, serving=True) as service:
        forgot = service.articles.index.memory.incident is not None
        if not settings.user_header and not forgot and await service.edge.api_keys.is_missing_keys():
            raise ConfigurationError(NO_API_KEYS_MESSAGE.format(host=settings.host))
        is_exposed = settings.public_url and not settings.auth_disabled and not settings.user_header
        if is_exposed and not forgot and not await service.edge.api_keys.is_required():
            log.warning("no API key exists: everybody who reaches %s may read and write", settings.public_url)
        on_hangup(lambda: reload_files(settings, service.articles.policies))
        await check_readiness(service)
        await warm_up(service)
        tune_interpreter()
        checking = asyncio.create_task(repeat(READINESS_INTERVAL_S, lambda: check_readiness(service)))
        work = _run_background(service, peer_metrics, stop, restarts, forked_background)
        background = asyncio.create_task(work)
        try:
            await serve(service, listener, on_ready=ready, stop=stop, peer_metrics=peer_metrics)
        except OSError as error:
            raise bind_error(settings, error) from error
        finally:
            for task in (*ready_tasks, checking):
                task.cancel()
            await asyncio.gather(*ready_tasks, checking, return_exceptions=True)
            stop.set()
            await background
    return EXIT_OK


async def warm_up(service: Service) -> None:
    """Load dictionaries and language statistics, in this process (single articles) and in the pool (batches).

    A client would wait for that. The thread lets the fork server start meanwhile.
    """
    with contextlib.suppress(AggregatorError):  # the keys are read before the store may lose them
        await service.edge.api_keys.current()
    await asyncio.gather(
        service.analysis.serving.start(),
        asyncio.to_thread(load_resources, service.analysis.serving.analyzer, html=False),
    )


async def check_readiness(service: Service) -> None:
    """Run the readiness checks, whose results the request handlers use; never raises."""
    is_ready = not await service.edge.readiness.run()
    with contextlib.suppress(AggregatorError):
        await service.articles.foreign_index.record_use()
        if is_ready:
            await service.articles.foreign_index.record_writes()


async def _run_background(
    service: Service,
    peer_metrics: PeerMetrics | None,
    stop: asyncio.Event,
    restarts: RestartCounts | None,
    forked: ForkedProcess | None,
) -> None:
    """Run the background services until ``stop``: with a memory store here, else in their own process."""
    if peer_metrics is None:
        service.background.scheduler.start()
        await stop.wait()
        await service.background.scheduler.stop()
        return
    # What the maintenance in the background process has changed.
    maintenance = service.background.maintenance
    refreshing = asyncio.create_task(repeat(maintenance.interval_s, maintenance.refresh))
    if restarts is not None:
        await keep_background_running(
            service.settings, service.analysis.layout, peer_metrics.directory, restarts, stop, forked
        )
    await stop.wait()
    refreshing.cancel()
