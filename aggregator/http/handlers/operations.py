"""Routes for operators and machines: health, readiness, metrics, OpenAPI."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import msgspec
from aiohttp import web

from aggregator import __version__
from aggregator.contract.responses import HealthOut, ReadyOut, StoreOut
from aggregator.errors import StoreUnavailable
from aggregator.http import json_response
from aggregator.http.app_keys import METRICS, OPENAPI_DOCUMENT, PEER_METRICS, SERVICE
from aggregator.http.metrics.collectors import ScrapeContext, store_info
from aggregator.http.metrics.registry import CONTENT_TYPE
from aggregator.http.middleware import errors


async def health(request: web.Request, query: None) -> web.StreamResponse:
    """The process runs."""
    return json_response.struct_response(HealthOut(status="ok", version=__version__))


async def ready(request: web.Request, query: None) -> web.StreamResponse:
    """Requests can be served: the store answers and may be written."""
    service = request.app[SERVICE]
    info = await service.store.info()
    if not info.ready:
        return errors.not_ready_response(info.problem or "The store is not ready.")
    store = StoreOut(info.kind, info.version, info.memory_bytes, info.durability)
    return json_response.struct_response(ReadyOut("ready", store, list(service.index.spaces)))


async def metrics(request: web.Request, query: None) -> web.StreamResponse:
    """Prometheus text, of all processes of this service."""
    app = request.app

    async def own() -> bytes:
        return await render_metrics(app)

    siblings = app.get(PEER_METRICS)
    text = await (siblings.scrape_all(own) if siblings is not None else own())
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})


async def render_metrics(app: web.Application) -> bytes:
    """What this process has to tell Prometheus."""
    service = app[SERVICE]
    info = await store_info(service.store)
    owed: Mapping[str, int] = {}
    with contextlib.suppress(StoreUnavailable):
        owed = await service.webhook_dispatcher.pending() if info.ready else {}
    scheduled = service.background
    here = scheduled if scheduled is not None and scheduled.scheduler.is_running else None
    return app[METRICS].render(ScrapeContext(info, service, here, owed))


async def openapi(request: web.Request, query: None) -> web.StreamResponse:
    """This service's contract."""
    return web.Response(
        body=msgspec.json.encode(request.app[OPENAPI_DOCUMENT]) + b"\n",
        content_type="application/json",
        charset=None,
    )
