"""A wired service in, a web application out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from aggregator.contract.encoding import Bands
from aggregator.http.app_keys import (
    ADMISSION,
    BANDS,
    BATCHES,
    LEAVING,
    METRICS,
    OPENAPI,
    PAGES,
    REFUSALS,
    ROOM,
    SERVICE,
    STREAMS,
)
from aggregator.http.handlers import sse
from aggregator.http.limits import per_caller
from aggregator.http.limits.body_memory import ROOM_BYTES, Room
from aggregator.http.limits.load_shedding import Admission
from aggregator.http.metrics.registry import Metrics
from aggregator.http.middleware import errors, observability
from aggregator.http.middleware.rejected_log import Refusals
from aggregator.http.openapi import document
from aggregator.http.pages import Pages
from aggregator.http.routes import ENDPOINTS, add_routes

if TYPE_CHECKING:
    from aggregator.app import Service


def make_app(service: Service) -> web.Application:
    """The application over ``service``, which the caller opens and closes."""
    app = web.Application(middlewares=[observability.observe, errors.middleware, observability.same_site])
    app[SERVICE] = service
    app[METRICS] = Metrics()
    app[BANDS] = Bands(service.settings.duplicate_bits, service.settings.related_bits)
    app[ADMISSION] = Admission(service.settings.max_waiting)
    app[ROOM] = Room(max(ROOM_BYTES, 8 * service.settings.max_body_bytes))  # a form has three texts
    app[OPENAPI] = document(ENDPOINTS)
    app[STREAMS], app[BATCHES] = per_caller.of_streams(), per_caller.of_batches()
    app[PAGES] = Pages()
    app[REFUSALS] = Refusals()
    app[LEAVING] = asyncio.Event()
    app.on_response_prepare.append(observability.on_prepare)
    app.on_shutdown.append(sse.close)
    add_routes(app)
    return app
