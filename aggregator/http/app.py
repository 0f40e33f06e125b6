"""A wired service in, a web application out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from aggregator.http import edge, errors, shares, sse
from aggregator.http.admission import Admission
from aggregator.http.endpoints import ENDPOINTS, add_routes
from aggregator.http.keys import (
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
from aggregator.http.metrics import Metrics
from aggregator.http.openapi import document
from aggregator.http.pages import Pages
from aggregator.http.refusals import Refusals
from aggregator.http.room import ROOM_BYTES, Room
from aggregator.http.views import Bands

if TYPE_CHECKING:
    from aggregator.app import Service


def make_app(service: Service) -> web.Application:
    """The application over ``service``, which the caller opens and closes."""
    app = web.Application(middlewares=[edge.observe, errors.middleware, edge.same_site])
    app[SERVICE] = service
    app[METRICS] = Metrics()
    app[BANDS] = Bands(service.settings.duplicate_bits, service.settings.related_bits)
    app[ADMISSION] = Admission(service.settings.max_waiting)
    app[ROOM] = Room(max(ROOM_BYTES, 8 * service.settings.max_body_bytes))  # a form has three texts
    app[OPENAPI] = document(ENDPOINTS)
    app[STREAMS], app[BATCHES] = shares.of_streams(), shares.of_batches()
    app[PAGES] = Pages()
    app[REFUSALS] = Refusals()
    app[LEAVING] = asyncio.Event()
    app.on_response_prepare.append(edge.on_prepare)
    app.on_shutdown.append(sse.close)
    add_routes(app)
    return app
