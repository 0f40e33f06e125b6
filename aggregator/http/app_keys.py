"""What a handler finds in the application and on a request, by typed key."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aggregator.auth.api_keys import AccessKey
from aggregator.contract.encoding import Bands
from aggregator.http.limits.body_memory import Room
from aggregator.http.limits.load_shedding import Admission
from aggregator.http.metrics.multiprocess import Siblings
from aggregator.http.metrics.registry import Metrics

if TYPE_CHECKING:
    from aggregator.app import Service
    from aggregator.http.limits.per_caller import Shares
    from aggregator.http.middleware.rejected_log import Refusals
    from aggregator.http.pages import Pages

SERVICE: web.AppKey[Service] = web.AppKey("service")
METRICS = web.AppKey("metrics", Metrics)
BANDS = web.AppKey("bands", Bands)
PAGES: web.AppKey[Pages] = web.AppKey("pages")
# Set once the server drains: from then on every answer is the last one of its connection.
LEAVING = web.AppKey("leaving", asyncio.Event)
# The other processes of this service, when there are any.
SIBLINGS = web.AppKey("siblings", Siblings)
ADMISSION = web.AppKey("admission", Admission)
ROOM = web.AppKey("room", Room)
STREAMS: web.AppKey[Shares] = web.AppKey("streams")
BATCHES: web.AppKey[Shares] = web.AppKey("batches")
REFUSALS: web.AppKey[Refusals] = web.AppKey("refusals")
OPENAPI: web.AppKey[dict[str, Any]] = web.AppKey("openapi")

CALLER = web.RequestKey("caller", AccessKey)
REQUEST_ID = web.RequestKey("request_id", str)


def caller_name(request: web.Request) -> str:
    """The name of the caller's key, or nothing where nobody is asked for one."""
    key = request.get(CALLER)
    return key.name if key is not None else ""
