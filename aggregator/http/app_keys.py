"""Typed keys of the application and of requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aggregator.auth.api_keys import ApiKey
from aggregator.http.limits import BodyMemoryBudget, LoadShedder, PerCallerLimit
from aggregator.http.metrics import Metrics
from aggregator.http.peer_metrics import PeerMetrics

if TYPE_CHECKING:
    from aggregator.app import Service

SERVICE: web.AppKey[Service] = web.AppKey("service")
METRICS = web.AppKey("metrics", Metrics)
# Set once the server drains: from then on every response closes its connection.
SHUTTING_DOWN = web.AppKey("shutting_down", asyncio.Event)
# The other processes of this service; absent in a single-process service.
PEER_METRICS = web.AppKey("peer_metrics", PeerMetrics)
LOAD_SHEDDER = web.AppKey("load_shedder", LoadShedder)
BODY_MEMORY_BUDGET = web.AppKey("body_memory_budget", BodyMemoryBudget)
STREAM_LIMIT = web.AppKey("stream_limit", PerCallerLimit)
BATCH_LIMIT = web.AppKey("batch_limit", PerCallerLimit)
OPENAPI_DOCUMENT: web.AppKey[dict[str, Any]] = web.AppKey("openapi")

BASE_PATH = web.AppKey("base_path", str)  # of public_url: "" or "/path"

CALLER_KEY = web.RequestKey("caller", ApiKey)
REQUEST_ID = web.RequestKey("request_id", str)


def caller_name(request: web.Request) -> str:
    """Name of the caller's key; "" where no key is required."""
    return request[CALLER_KEY].name if CALLER_KEY in request else ""


def is_public(request: web.Request) -> bool:
    """Whether the caller's key is published in a page, so that anybody may read what it gets."""
    return CALLER_KEY in request and request[CALLER_KEY].role == "related"


def caller_id(request: web.Request) -> str:
    """Id of the caller's key; "" where no key is required."""
    return request[CALLER_KEY].id if CALLER_KEY in request else ""
