"""Construction of the web application over a wired service."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from aggregator.contract.encoding import DistanceThresholds
from aggregator.http import hosts
from aggregator.http.app_keys import (
    BASE_PATH,
    BATCH_LIMIT,
    BODY_LIMITS,
    BODY_MEMORY_BUDGET,
    DISTANCE_THRESHOLDS,
    LOAD_SHEDDER,
    METRICS,
    OPENAPI_DOCUMENT,
    SERVICE,
    SHUTTING_DOWN,
    STREAM_LIMIT,
)  # fmt: skip
from aggregator.http.errors import REFUSAL_LOG, RefusalLog
from aggregator.http.handlers import feeds
from aggregator.http.handlers.event_views import EVENT_ITEMS, EventItemsCache
from aggregator.http.limits import (
    BUDGET_BYTES,
    BodyLimits,
    BodyMemoryBudget,
    LoadShedder,
    batch_limit,
    stream_limit,
)  # fmt: skip
from aggregator.http.metrics import Metrics
from aggregator.http.middleware import add_headers, process_request
from aggregator.http.openapi import build_document
from aggregator.http.pages import PAGES, Pages
from aggregator.http.proxy_users import PROXY_USERS, ProxyUsers
from aggregator.http.routes import ENDPOINTS, add_routes

if TYPE_CHECKING:
    from aggregator.app import Service


def make_app(service: Service) -> web.Application:
    """The application over ``service``, which the caller opens and closes."""
    settings = service.settings
    prefix = hosts.base_path(settings)
    app = web.Application(middlewares=[process_request])
    app[SERVICE] = service
    app[METRICS] = Metrics(service.articles.policies.names)
    app[DISTANCE_THRESHOLDS] = DistanceThresholds(settings.duplicate_bits, settings.related_bits)
    app[LOAD_SHEDDER] = LoadShedder(settings.max_inflight_articles)
    app[BODY_LIMITS] = BodyLimits(
        settings.max_body_bytes, settings.max_batch_lines, settings.body_timeout_seconds
    )
    # One caller gets half of the budget, and a percent-encoded form has up to three times max_body_bytes.
    app[BODY_MEMORY_BUDGET] = BodyMemoryBudget(max(BUDGET_BYTES, 8 * settings.max_body_bytes))
    app[OPENAPI_DOCUMENT] = build_document(ENDPOINTS, prefix)
    app[STREAM_LIMIT], app[BATCH_LIMIT] = stream_limit(), batch_limit()
    app[PAGES] = Pages(prefix)
    app[EVENT_ITEMS] = EventItemsCache()
    app[BASE_PATH], app[PROXY_USERS] = prefix, ProxyUsers(settings, service.clock)
    app[REFUSAL_LOG] = RefusalLog()
    app[SHUTTING_DOWN] = asyncio.Event()
    app.on_response_prepare.append(add_headers)
    app.on_shutdown.append(feeds.close_streams)
    add_routes(app)
    return app
