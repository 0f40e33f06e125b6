"""What a handler finds in the application and on a request, by typed key."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aggregator.auth.api_keys import ApiKey
from aggregator.contract.encoding import DistanceThresholds
from aggregator.http.limits.body_memory import BodyMemoryBudget
from aggregator.http.limits.load_shedding import LoadShedder
from aggregator.http.metrics.multiprocess import PeerMetrics
from aggregator.http.metrics.registry import Metrics

if TYPE_CHECKING:
    from aggregator.app import Service
    from aggregator.http.limits.per_caller import PerCallerLimit
    from aggregator.http.middleware.rejected_log import RejectedRequestLog
    from aggregator.http.pages import Pages

SERVICE: web.AppKey[Service] = web.AppKey("service")
METRICS = web.AppKey("metrics", Metrics)
DISTANCE_THRESHOLDS = web.AppKey("bands", DistanceThresholds)
PAGES: web.AppKey[Pages] = web.AppKey("pages")
# Set once the server drains: from then on every answer is the last one of its connection.
SHUTTING_DOWN = web.AppKey("leaving", asyncio.Event)
# The other processes of this service, when there are any.
PEER_METRICS = web.AppKey("siblings", PeerMetrics)
LOAD_SHEDDER = web.AppKey("admission", LoadShedder)
BODY_MEMORY_BUDGET = web.AppKey("room", BodyMemoryBudget)
STREAM_LIMIT: web.AppKey[PerCallerLimit] = web.AppKey("streams")
BATCH_LIMIT: web.AppKey[PerCallerLimit] = web.AppKey("batches")
REJECTED_LOG: web.AppKey[RejectedRequestLog] = web.AppKey("refusals")
OPENAPI_DOCUMENT: web.AppKey[dict[str, Any]] = web.AppKey("openapi")

CALLER_KEY = web.RequestKey("caller", ApiKey)
REQUEST_ID = web.RequestKey("request_id", str)


def caller_name(request: web.Request) -> str:
    """The name of the caller's key, or nothing where nobody is asked for one."""
    key = request.get(CALLER_KEY)
    return key.name if key is not None else ""
