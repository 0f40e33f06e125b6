"""Event feeds: Atom (RFC 4287) and JSON Feed 1.1, with conditional requests.

An entry keeps its id and is updated with its event: new items, another status, an editor's action.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

import msgspec
from aiohttp import web

from aggregator.contract.encoding import to_datetime
from aggregator.contract.requests import FeedQuery
from aggregator.events import event as formatting
from aggregator.events.event import Event
from aggregator.http.app_keys import SERVICE
from aggregator.http.handlers.event_filters import build_filter
from aggregator.http.hosts import base_url
from aggregator.http.json_response import conditional_response
from aggregator.time_units import format_rfc3339

ATOM_NAMESPACE = "http://www.w3.org/2005/Atom"
ATOM_TYPE, JSON_FEED_TYPE = "application/atom+xml", "application/feed+json"
JSON_FEED_VERSION = "https://jsonfeed.org/version/1.1"
FEED_TITLE = "Breaking events"
_UUID_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "aggregator.invalid")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Characters that XML 1.0 (section 2.2) forbids, even escaped.
_XML_ILLEGAL_CHARS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


async def atom_feed(request: web.Request, query: FeedQuery) -> web.StreamResponse:
    """Events as an Atom feed."""
    events, base = await _load_events(request, query), base_url(request)
    return _feed_response(request, _render_atom(events, base, str(request.rel_url)), ATOM_TYPE, events)


async def json_feed(request: web.Request, query: FeedQuery) -> web.StreamResponse:
    """Events as a JSON Feed."""
    events, base = await _load_events(request, query), base_url(request)
    return _feed_response(
        request, _render_json_feed(events, base, str(request.rel_url)), JSON_FEED_TYPE, events
    )


async def _load_events(request: web.Request, query: FeedQuery) -> Sequence[Event]:
    service = request.app[SERVICE]
    return await service.events.list_events(
        status=query.status, limit=query.limit, event_filter=await build_filter(service.desks, query)
    )


def updated_ms(event: Event) -> int:
    """Time of the event's last change, in ms since 1970."""
    return max(event.last_seen_ms, event.detected_at_ms, *(action.at_ms for action in event.actions))


def _feed_response(
    request: web.Request, body: bytes, media_type: str, events: Sequence[Event]
) -> web.Response:
    newest = max((to_datetime(updated_ms(event)) for event in events), default=_EPOCH)
    return conditional_response(request, body, media_type, modified_at=newest.replace(microsecond=0))


def _render_atom(events: Sequence[Event], base: str, path: str) -> bytes:
    feed = ElementTree.Element("feed", xmlns=ATOM_NAMESPACE)
    newest = max((updated_ms(event) for event in events), default=0)
    _add_element(feed, "id", uuid.uuid5(_UUID_NAMESPACE, "feed:" + path).urn)
    _add_element(feed, "title", FEED_TITLE)
    _add_element(feed, "updated", format_rfc3339(newest))
    _add_element(feed, "generator", "aggregator")
    _add_element(_add_element(feed, "author"), "name", "aggregator")
    _add_element(feed, "link", rel="self", type=ATOM_TYPE, href=base + path)
    _add_element(feed, "link", rel="alternate", type="text/html", href=base + "/")
    for event in events:
        entry = _add_element(feed, "entry")
        _add_element(entry, "id", _entry_id(event))
        _add_element(entry, "title", formatting.title_of(event))
        _add_element(entry, "published", format_rfc3339(event.detected_at_ms))
        _add_element(entry, "updated", format_rfc3339(updated_ms(event)))
        _add_element(entry, "link", rel="alternate", type="text/html", href=formatting.event_url(event, base))
        _add_element(entry, "category", term=event.status, scheme="urn:aggregator:status", label=event.status)
        for term in event.terms:
            _add_element(entry, "category", term=term)
        _add_element(entry, "summary", summary(event), type="text")
    text: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return text


def _render_json_feed(events: Sequence[Event], base: str, path: str) -> bytes:
    items: list[dict[str, Any]] = [
        {
            "id": _entry_id(event),
            "url": formatting.event_url(event, base),
            "title": _strip_illegal_chars(formatting.title_of(event)),
            "content_text": _strip_illegal_chars(summary(event)),
            "date_published": format_rfc3339(event.detected_at_ms),
            "date_modified": format_rfc3339(updated_ms(event)),
            "tags": [event.status, *map(_strip_illegal_chars, event.terms)],
            "_aggregator": {
                "id": event.id,
                "size": event.size,
                "sources": list(map(_strip_illegal_chars, event.sources)),
            },
        }
        for event in events
    ]
    feed = {
        "version": JSON_FEED_VERSION,
        "title": FEED_TITLE,
        "home_page_url": base + "/",
        "feed_url": base + path,
        "items": items,
    }
    return msgspec.json.encode(feed)


def summary(event: Event) -> str:
    """Size, status and reason of an event in one or two sentences."""
    return f"{formatting.size_summary(event)}, {event.status}. {event.reason}"


def _entry_id(event: Event) -> str:
    return uuid.uuid5(_UUID_NAMESPACE, "event:" + event.id).urn


def _strip_illegal_chars(text: str) -> str:
    return _XML_ILLEGAL_CHARS.sub("", text)


def _add_element(
    parent: ElementTree.Element, name: str, text: str = "", **attributes: str
) -> ElementTree.Element:
    clean = {key: _strip_illegal_chars(value) for key, value in attributes.items()}
    element = ElementTree.SubElement(parent, name, clean)
    if text:
        element.text = _strip_illegal_chars(text)
    return element
