"""Routes for operators and machines: health, readiness, metrics, OpenAPI."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial

import msgspec
from aiohttp import web

from aggregator import __version__, readiness
from aggregator.app import Service
from aggregator.contract.responses import HealthOut, ReadyOut, StoreOut
from aggregator.errors import StoreUnavailable
from aggregator.http import errors
from aggregator.http.app_keys import METRICS, OPENAPI_DOCUMENT, PEER_METRICS, SERVICE
from aggregator.http.metrics import CONTENT_TYPE, store_info


async def health(service: Service) -> HealthOut:
    """Liveness check. The process handles requests."""
    return HealthOut("ok", __version__, service.articles.index.memory.identity)


async def ready(service: Service) -> ReadyOut | web.Response:
    """Readiness check. The store answers and accepts writes, and no other check fails."""
    # Twice this limit, with that of the checks, is below ``request_timeout_seconds``.
    info = await store_info(service.store, readiness.CHECK_TIMEOUT_S)
    if not info.ready:
        return errors.not_ready_response(info.problem or "The store is not ready.")
    if problems := await service.edge.readiness.run():
        return errors.not_ready_response(" ".join(problems.values()))
    store = StoreOut(info.kind, info.version, info.memory_bytes, info.durability)
    index = service.articles.index
    degraded = index.memory.incident.sentence if index.memory.incident else None
    return ReadyOut("degraded" if degraded else "ready", store, list(index.spaces), degraded)


async def metrics(request: web.Request) -> web.Response:
    """Prometheus metrics. Of all processes of this service."""
    return web.Response(body=await all_metrics(request.app), headers={"Content-Type": CONTENT_TYPE})


async def all_metrics(app: web.Application) -> bytes:
    """The Prometheus exposition of all processes of this service."""
    own, peers = partial(render_metrics, app), app.get(PEER_METRICS)
    return await (peers.scrape_all(own) if peers is not None else own())


async def render_metrics(app: web.Application) -> bytes:
    """The Prometheus exposition of this process."""
    service, metrics = app[SERVICE], app[METRICS]
    info = await store_info(service.store)
    pending: Mapping[str, int] = {}
    with contextlib.suppress(StoreUnavailable):
        pending = await service.background.webhook_dispatcher.queue.pending() if info.ready else {}
    metrics.webhook_queue_length.set(sum(pending.values()))
    if info.ready:
        await service.edge.readiness.run()
    running = service.background if service.background.scheduler.is_running else None
    return metrics.render(info, service, running)


async def openapi(request: web.Request) -> web.StreamResponse:
    """This OpenAPI document."""
    return web.Response(
        body=msgspec.json.encode(request.app[OPENAPI_DOCUMENT]) + b"\n",
        content_type="application/json",
        charset=None,
    )
