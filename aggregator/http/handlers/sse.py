"""Changed events as server-sent events (WHATWG HTML, section 9.2).

    id: 1790000000000-0          the position to resume behind, as Last-Event-ID or ?after=
    event: fired                 or updated, merged, closed; "reset": load the list again, changes were missed
    data: {...}                  the event as GET /v1/events shows it

A stream says its position before anything happens, so that whoever is cut off at once can resume.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from aggregator.concurrency.fair_semaphore import CALLER
from aggregator.contract.requests import EventStreamQuery
from aggregator.contract.responses import encode
from aggregator.events.broadcast import Listener, Told
from aggregator.events.filter import EventQuery
from aggregator.http.app_keys import METRICS, SERVICE, STREAMS
from aggregator.http.handlers import event_views
from aggregator.http.handlers.event_filters import wanted
from aggregator.http.middleware import auth
from aggregator.http.middleware.errors import TooManyStreams

HEARTBEAT_S = 15.0
RETRY_MS = 2000
# A listener whose connection takes nothing for so long is gone.
WRITE_TIMEOUT_S = 30.0
HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}


async def events(request: web.Request, query: EventStreamQuery) -> web.StreamResponse:
    """Events as they change, until the caller or the service leaves, or the caller's key is revoked."""
    with request.app[STREAMS].place(CALLER.get()):
        return await _stream(request, query)


async def close(app: web.Application) -> None:
    """At shutdown: end the streams, so that nothing waits for their callers."""
    app[SERVICE].event_stream.close()


async def _stream(request: web.Request, query: EventStreamQuery) -> web.StreamResponse:
    service = request.app[SERVICE]
    stream, admitted = service.event_stream, await wanted(service.watches, query)
    if stream.is_full:
        raise TooManyStreams("No more streams can be opened here just now; try again in a few seconds.")
    after = request.headers.get("Last-Event-ID", "") or query.after
    async with stream.listen(after.encode("utf-8", "replace") or None) as listener:
        response = web.StreamResponse(headers=HEADERS)
        await response.prepare(request)
        if request.method == "HEAD":  # whatever is written now would be taken for the next answer
            return response
        try:
            with request.app[METRICS].listeners.track_inprogress():
                await _pass_on(request, response, listener, admitted)
        except (ConnectionError, TimeoutError):  # the caller is gone
            return response
        await response.write_eof()
        return response


async def _pass_on(
    request: web.Request, response: web.StreamResponse, listener: Listener, admitted: EventQuery
) -> None:
    opening = b"retry: %d\nid: %s\n" % (RETRY_MS, listener.position)
    await _write(response, opening + (b"event: reset\ndata: {}\n\n" if listener.missed else b"\n"))
    while True:
        try:
            told = await listener.get(HEARTBEAT_S)
            message = _message(told, admitted) if told is not None else b""
        except TimeoutError:
            message = b": all is well\n\n"
        if not message or not await auth.still_admitted(request):
            return
        await _write(response, message)


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_TIMEOUT_S):
        await response.write(data)


def _message(told: Told, admitted: EventQuery) -> bytes:
    """One change; of what the listener does not want only the position, so that it need not be read again."""
    if told.event is None or not admitted.matches(told.event):
        return b"id: %s\n\n" % told.position
    data = encode(event_views.event(told.event))
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (told.position, told.change.kind.encode(), data)
