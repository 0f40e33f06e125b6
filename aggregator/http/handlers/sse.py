"""Changed events as server-sent events (WHATWG HTML, section 9.2).

    id: 1790000000000-0          the position to resume behind, as Last-Event-ID or ?after=
    event: fired                 or updated, merged, closed; "reset": load the list again, changes were missed
    data: {...}                  the event as GET /v1/events shows it

A stream says its position before anything happens, so that whoever is cut off at once can resume.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from aggregator.concurrency.fair_semaphore import current_caller
from aggregator.contract.requests import EventStreamQuery
from aggregator.contract.responses import encode
from aggregator.events.broadcast import ChangeNotification, Subscriber
from aggregator.events.filter import EventFilter
from aggregator.http.app_keys import METRICS, SERVICE, STREAM_LIMIT
from aggregator.http.handlers import event_views
from aggregator.http.handlers.event_filters import build_filter
from aggregator.http.middleware import auth
from aggregator.http.middleware.errors import TooManyStreams

HEARTBEAT_S = 15.0
RETRY_MS = 2000
# A listener whose connection takes nothing for so long is gone.
WRITE_TIMEOUT_S = 30.0
SSE_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}


async def stream_events(request: web.Request, query: EventStreamQuery) -> web.StreamResponse:
    """Events as they change, until the caller or the service leaves, or the caller's key is revoked."""
    with request.app[STREAM_LIMIT].slot(current_caller.get()):
        return await _stream(request, query)


async def close_streams(app: web.Application) -> None:
    """At shutdown: end the streams, so that nothing waits for their callers."""
    app[SERVICE].change_broadcaster.close()


async def _stream(request: web.Request, query: EventStreamQuery) -> web.StreamResponse:
    service = request.app[SERVICE]
    stream, admitted = service.change_broadcaster, await build_filter(service.saved_filters, query)
    if stream.is_full:
        raise TooManyStreams("No more streams can be opened here just now; try again in a few seconds.")
    after = request.headers.get("Last-Event-ID", "") or query.after
    async with stream.subscribe(after.encode("utf-8", "replace") or None) as listener:
        response = web.StreamResponse(headers=SSE_HEADERS)
        await response.prepare(request)
        if request.method == "HEAD":  # whatever is written now would be taken for the next answer
            return response
        try:
            with request.app[METRICS].event_streams.track_inprogress():
                await _forward(request, response, listener, admitted)
        except (ConnectionError, TimeoutError):  # the caller is gone
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
            told = await subscriber.get(HEARTBEAT_S)
            message = _format_message(told, event_filter) if told is not None else b""
        except TimeoutError:
            message = b": all is well\n\n"
        if not message or not await auth.is_still_authorized(request):
            return
        await _write(response, message)


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_TIMEOUT_S):
        await response.write(data)


def _format_message(notification: ChangeNotification, event_filter: EventFilter) -> bytes:
    """One change; of what the listener does not want only the position, so that it need not be read again."""
    if notification.event is None or not event_filter.matches(notification.event):
        return b"id: %s\n\n" % notification.position
    data = encode(event_views.event_out(notification.event))
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        notification.position,
        notification.change.kind.encode(),
        data,
    )
