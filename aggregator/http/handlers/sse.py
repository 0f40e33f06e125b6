"""Event changes as server-sent events (WHATWG HTML, section 9.2).

    id: 1790000000000-0          position to resume after, as Last-Event-ID or ?after=
    event: fired                 or updated, doubled, merged, closed; "reset": changes were missed, reload
    data: {...}                  the event as in GET /v1/events

A stream sends its position first, so that a client can resume even before any change.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from aggregator.concurrency import current_caller
from aggregator.contract.requests import EventStreamQuery
from aggregator.contract.responses import encode
from aggregator.errors import TooManyStreams
from aggregator.events.broadcast import ChangeNotification, Subscriber
from aggregator.events.filter import EventFilter
from aggregator.http import auth
from aggregator.http.app_keys import METRICS, SERVICE, STREAM_LIMIT
from aggregator.http.handlers import event_views
from aggregator.http.handlers.event_filters import build_filter

HEARTBEAT_S = 15.0
RETRY_MS = 2000
# A client that accepts no data for this long is disconnected.
WRITE_TIMEOUT_S = 30.0
SSE_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}


async def stream_events(request: web.Request, query: EventStreamQuery) -> web.StreamResponse:
    """Stream event changes until the client disconnects, the service stops or the caller's key is revoked."""
    with request.app[STREAM_LIMIT].slot(current_caller.get()):
        return await _stream(request, query)


async def close_streams(app: web.Application) -> None:
    """Close all streams, so that the shutdown does not wait for their clients."""
    app[SERVICE].change_broadcaster.close()


async def _stream(request: web.Request, query: EventStreamQuery) -> web.StreamResponse:
    service = request.app[SERVICE]
    broadcaster, event_filter = service.change_broadcaster, await build_filter(service.desks, query)
    if broadcaster.is_full:
        raise TooManyStreams("No more streams can be opened at the moment; retry in a few seconds.")
    after = request.headers.get("Last-Event-ID", "") or query.after
    async with broadcaster.subscribe(after.encode("utf-8", "replace") or None) as subscriber:
        response = web.StreamResponse(headers=SSE_HEADERS)
        await response.prepare(request)
        if request.method == "HEAD":  # the client would take a body for the next response
            return response
        try:
            with request.app[METRICS].event_streams.track_inprogress():
                await _forward(request, response, subscriber, event_filter)
        except (ConnectionError, TimeoutError):  # the client disconnected
            return response
        await response.write_eof()
        return response


async def _forward(
    request: web.Request, response: web.StreamResponse, subscriber: Subscriber, event_filter: EventFilter
) -> None:
    opening = b"retry: %d\nid: %s\n" % (RETRY_MS, subscriber.position)
    await _write(response, opening + (b"event: reset\ndata: {}\n\n" if subscriber.has_gap else b"\n"))
    while True:
        try:
            notification = await subscriber.get(HEARTBEAT_S)
            now_ms = request.app[SERVICE].clock()
            message = _format_message(notification, event_filter, now_ms) if notification is not None else b""
        except TimeoutError:
            message = b": heartbeat\n\n"
        if not message or not await auth.is_still_authorized(request):
            return
        await _write(response, message)


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_TIMEOUT_S):
        await response.write(data)


def _format_message(notification: ChangeNotification, event_filter: EventFilter, now_ms: int) -> bytes:
    """The message for one change; only its position if the filter excludes it, so that a resume skips it."""
    if notification.event is None or not event_filter.matches(notification.event):
        return b"id: %s\n\n" % notification.position
    data = encode(event_views.event_out(notification.event, now_ms))
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        notification.position,
        notification.change.kind.encode(),
        data,
    )
