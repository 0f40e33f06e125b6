"""The feed of events, Atom (RFC 4287), and changes as server-sent events (WHATWG HTML, 9.2).

An entry of the feed keeps its id and is updated with its event: new items, another status, an action.

    id: 1790000000000-0          position to resume after, as Last-Event-ID or ?after=
    event: fired                 or updated, development, doubled, merged, closed; "reset": reload
    data: {...}                  the event as in GET /v1/events
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from xml.etree import ElementTree

from aiohttp import web

from aggregator.concurrency import current_caller
from aggregator.contract.requests import EventStreamQuery, FeedQuery
from aggregator.contract.responses import encode
from aggregator.errors import TooManyStreams
from aggregator.events import event as formatting
from aggregator.events.broadcast import ChangeNotification, Subscriber
from aggregator.events.days import digest_period, handover
from aggregator.events.event import Event
from aggregator.events.selection import EventFilter
from aggregator.http import auth
from aggregator.http.app_keys import METRICS, SERVICE, STREAM_LIMIT
from aggregator.http.handlers.event_views import event_out
from aggregator.http.handlers.events import build_filter, load_period
from aggregator.http.pages import conditional_response, shared_body
from aggregator.time_units import DAY_MS, format_rfc3339

ATOM_NAMESPACE = "http://www.w3.org/2005/Atom"
ATOM_TYPE = "application/atom+xml"
FEED_TITLE = "Breaking events"
_UUID_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "aggregator.invalid")
# Characters that XML 1.0 (section 2.2) forbids, even escaped.
_XML_ILLEGAL_CHARS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


async def atom_feed(request: web.Request, query: FeedQuery) -> web.StreamResponse:
    """Get events as an Atom feed."""

    async def render(_: bytes) -> bytes:
        events, title = await _load_events(request, query)
        return _render_atom(events, title, auth.base_url(request), str(request.rel_url))

    body = await shared_body(request, render)
    updated = body.partition(b"<updated>")[2].partition(b"</updated>")[0].decode()  # of the feed
    modified_at = datetime.fromisoformat(updated).replace(microsecond=0)
    return conditional_response(request, body, ATOM_TYPE, modified_at=modified_at)


async def _load_events(request: web.Request, query: FeedQuery) -> tuple[Sequence[Event], str]:
    """The events, and the title of the feed: with the name of the desk, and what is filtered."""
    service, desks = request.app[SERVICE], request.app[SERVICE].events.desks
    repository, wanted = service.events.repository, await build_filter(desks, query)
    if query.digest:
        desk = await desks.get(query.watch)
        since_ms, until_ms = digest_period(desk, service.clock())
        found = await load_period(service, desk.id, since_ms - DAY_MS, until_ms)
        listed = chain.from_iterable(handover(found, since_ms, until_ms).values())
        return list(listed)[: query.limit], f"{desk.name}: digest of the day"
    events = await repository.list_events(status=query.status, limit=query.limit, event_filter=wanted)
    desk_name = (await desks.all())[query.watch].name if query.watch else ""
    subjects = ", ".join(filter(None, (desk_name, wanted.term, wanted.source, wanted.lang)))
    return events, f"{FEED_TITLE}: {subjects}" if subjects else FEED_TITLE


def updated_ms(event: Event) -> int:
    """Time of the event's last change, in ms since 1970."""
    return max(event.last_seen_ms, event.detected_at_ms, *(action.at_ms for action in event.actions))


def _render_atom(events: Sequence[Event], title: str, base: str, path: str) -> bytes:
    feed = ElementTree.Element("feed", xmlns=ATOM_NAMESPACE)
    _add_element(feed, "id", uuid.uuid5(_UUID_NAMESPACE, "feed:" + path).urn)
    _add_element(feed, "title", title)
    _add_element(feed, "updated", format_rfc3339(max(map(updated_ms, events), default=0)))
    _add_element(feed, "generator", "aggregator")
    _add_element(_add_element(feed, "author"), "name", "aggregator")
    _add_element(feed, "link", rel="self", type=ATOM_TYPE, href=base + path)
    _add_element(feed, "link", rel="alternate", type="text/html", href=base + "/")
    for event in events:
        entry = _add_element(feed, "entry")
        _add_element(entry, "id", uuid.uuid5(_UUID_NAMESPACE, "event:" + event.id).urn)
        _add_element(entry, "title", formatting.current_title(event))
        _add_element(entry, "published", format_rfc3339(event.detected_at_ms))
        _add_element(entry, "updated", format_rfc3339(updated_ms(event)))
        _add_element(entry, "link", rel="alternate", type="text/html", href=formatting.event_url(event, base))
        _add_element(entry, "category", term=event.status, scheme="urn:aggregator:status", label=event.status)
        for term in event.terms:
            _add_element(entry, "category", term=term)
        facts = f"{formatting.size_summary(event)}, {event.status}. {event.reason}"
        _add_element(entry, "summary", facts, type="text")
    text: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return text


def _add_element(
    parent: ElementTree.Element, name: str, text: str = "", **attributes: str
) -> ElementTree.Element:
    clean = {key: _XML_ILLEGAL_CHARS.sub("", value) for key, value in attributes.items()}
    element = ElementTree.SubElement(parent, name, clean)
    element.text = _XML_ILLEGAL_CHARS.sub("", text) or None
    return element


HEARTBEAT_S = 15.0
RETRY_MS = 2000
WRITE_TIMEOUT_S = 30.0  # a client that accepts no data for this long is disconnected
SSE_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}


async def stream_events(request: web.Request, query: EventStreamQuery) -> web.StreamResponse:
    """Stream event changes as server-sent events; resume with Last-Event-ID."""
    service, broadcaster = request.app[SERVICE], request.app[SERVICE].events.broadcaster
    with request.app[STREAM_LIMIT].slot(current_caller.get()):
        event_filter = await build_filter(service.events.desks, query)
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


async def close_streams(app: web.Application) -> None:
    """Close all streams, so that the shutdown does not wait for their clients."""
    app[SERVICE].events.broadcaster.close()


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
    kind, data = notification.change.kind.encode(), encode(event_out(notification.event, now_ms))
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (notification.position, kind, data)
